/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The kernel side of soft_ib: declarations shared by the C files. Two levels: a slot is a place at a switch, with its
 * counters and knobs, and lasts as long as the module; an HCA is the ib_device that may be plugged into it.
 *
 * Locks, outer to inner: plug_lock; a QP's modify_lock; fabric_lock (MADs, link, port state); a QP's rq_lock; an SRQ's
 * lock; a QP's sq_lock; an HCA's regions_lock; active_lock; a CQ's lock. A processor's burst lock is inside the two
 * mutexes, under which objects' users are waited for, and outside of all others: engines hold it while they use
 * objects, which are freed after each processor's lock was taken once. HCAs and groups are freed a grace period of RCU
 * after they were unlinked.
 */
#pragma once
#include <connections.h>
#include <linux/debugfs.h>
#include <linux/device.h>
#include <linux/error-injection.h>
#include <linux/hrtimer.h>
#include <linux/if.h>
#include <linux/interrupt.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/vmalloc.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

enum {
	SOFT_MAX_SGES = 18,
	SOFT_MAX_VECTORS = 64,
	/* Pieces of a packet, with elements that cross pages. */
	SOFT_MAX_PIECES = 40,
	SOFT_MAX_QUEUE = 1 << 14,
	/* More than ib_ipoib's receives on an HCA without SRQs: 64 of each of 4096 connections, and a few. */
	SOFT_MAX_CQES = 1 << 19,
	SOFT_BURST = 32,
	SOFT_MAX_LSO_HEADER = 128,
	/* Bytes of inline data, which are kept in the place of an LSO's header. */
	SOFT_MAX_INLINE = SOFT_MAX_LSO_HEADER,
	SOFT_MAX_FRAME = 4096,
	/* Pages of a region for fast registration. */
	SOFT_MAX_REG_PAGES = 512,
	/* Key of the kernel's own elements at kernel addresses; no region has it. */
	SOFT_LOCAL_KEY = 1,
	SOFT_MAX_VFS = 16,
	/* Multicast groups of an HCA, queue pairs of each, and attachments of all. */
	SOFT_MAX_GROUPS = 1024,
	SOFT_MAX_GROUP_QPS = 1024,
	SOFT_MAX_ATTACHMENTS = 1 << 16,
	SOFT_GROUP_BUCKETS = 256,
	/*
	 * Queue pair numbers: of those created for a netdev's use, which a filtering rdma_netdev examines, and others.
	 */
	SOFT_FIRST_NETDEV_QPN = 0x810000,
	SOFT_LAST_NETDEV_QPN = 0x81ffff,
};

/* Flag of a send of the fabric itself, without a completion for the consumer. */
#define SOFT_OWN_SEND IB_SEND_RESERVED_START

#define SOFT_COUNTERS(X)                                                                                               \
	X(post_send)                                                                                                   \
	X(send_wr)                                                                                                     \
	X(post_recv)                                                                                                   \
	X(recv_wr)                                                                                                     \
	X(cq_event)                                                                                                    \
	X(poll)                                                                                                        \
	X(queue_bytes)                                                                                                 \
	X(rc_sent)                                                                                                     \
	X(rc_sent_again)                                                                                               \
	X(segments)                                                                                                    \
	X(rnr_nak)                                                                                                     \
	X(rdma_reads)                                                                                                  \
	X(rdma_writes)                                                                                                 \
	X(atomics)                                                                                                     \
	X(regions)                                                                                                     \
	X(fast_regions)                                                                                                \
	X(registrations)                                                                                               \
	X(accelerated_sends)                                                                                           \
	X(accelerated_receives)                                                                                        \
	X(accelerated_devices)                                                                                         \
	X(delivered)                                                                                                   \
	X(drop_no_receive)                                                                                             \
	X(drop_qkey)                                                                                                   \
	X(drop_pkey)                                                                                                   \
	X(drop_source)                                                                                                 \
	X(drop_no_qp)                                                                                                  \
	X(drop_length)                                                                                                 \
	X(drop_message)                                                                                                \
	X(drop_route)                                                                                                  \
	X(drop_fault)                                                                                                  \
	X(cq_overrun)

struct soft_counters {
#define X(name) atomic64_t name;
	SOFT_COUNTERS(X)
#undef X
};

struct soft_hca;

/* Settings of a virtual function. */
struct soft_vf {
	u64 node_guid, port_guid;
	/* IFLA_VF_LINK_STATE_*. */
	int link_state;
};

struct soft_slot {
	unsigned int index;
	struct soft_hca __rcu *hca;
	struct device *parent;
	struct soft_counters counters;
	/* Completion queues of each vector. */
	atomic_t cqs[SOFT_MAX_VECTORS];
	/* Knobs. */
	u32 drop_every, corrupt_every, delay_us, fail_sends, lose_completions;
	u32 drop_rc_every, rnr_every, min_retries, hide_gid_change;
	u32 rate_mbps, hold_sends;
	/*
	 * A bit for each next request for an rdma_netdev, to fail it; groups are attached without setting their Q_Key.
	 */
	u32 fail_rdma_netdev, leave_qkey;
	atomic_t dropped_of, corrupted_of, rc_dropped_of, rnr_of;
	/* Time (ktime_get_ns()) at which a link of limited rate has sent all its frames. */
	atomic64_t occupied_until;
	struct soft_vf vfs[SOFT_MAX_VFS];
	/* Result of the last lookup. */
	char resolved[IFNAMSIZ];
	struct dentry *dir;
};

struct soft_cq {
	struct ib_cq ib;
	/* Guards the members below. */
	spinlock_t lock;
	struct ib_wc *ring;
	u32 vector, size, head, tail;
	enum ib_cq_notify_flags armed;
	/* Moderation: an event after this many entries, or this long after the first of them. */
	u32 moderation_count, moderation_us, unreported;
	bool event_due, dying;
	/* An entry was lost, which stops the queue for good; its consumer was told so. */
	bool overrun, overrun_told;
	struct list_head due;
	struct hrtimer timer;
};

struct soft_recv {
	u64 wr_id;
	u32 sges;
	/* The elements have keys of regions; otherwise they are kernel addresses. */
	bool mapped;
	struct ib_sge sge[SOFT_MAX_SGES];
};

struct soft_ah {
	struct ib_ah ib;
	struct rdma_ah_attr attr;
};

/* Work requests that change a region of this side, and send nothing. */
enum soft_local { SOFT_NOT_LOCAL, SOFT_REGISTER, SOFT_INVALIDATE };
enum soft_last_word { SOFT_NO_WORD, SOFT_IMMEDIATE, SOFT_KEY_TO_INVALIDATE };

struct soft_send {
	u64 wr_id;
	u32 sges, bytes;
	int flags;
	enum ib_wc_opcode completion;
	/* Other than success: the send fails with this status once earlier ones are complete. */
	enum ib_wc_status status;
	/* Opcode of a message's first packet, and what its last one has behind the BTH. */
	u8 opcode;
	enum soft_last_word last_word;
	/* The elements have keys of regions; otherwise they are kernel addresses. */
	bool mapped;
	/* A work request that sends nothing, and its state. */
	enum soft_local local;
	bool executed;
	/* Access that it grants, IB_ACCESS_*. */
	int access;
	/*
	 * Headers of a datagram; of a message its own fields: the peer's memory, immediate data, a key to invalidate;
	 * of a local one the key, remote_key.
	 */
	struct fabric_headers headers;
	/* LSO: bytes of headers of each segment, and of data in each, or 0. */
	u32 header_bytes, segment_bytes;
	/* LSO's headers, or inline data. */
	u8 header[SOFT_MAX_LSO_HEADER];
	/* PSNs of a message whose first packet was sent. */
	u32 first_psn, packets;
	struct ib_sge sge[SOFT_MAX_SGES];
};

/* Receives that many queue pairs share. */
struct soft_srq {
	struct ib_srq ib;
	/* Guards the members below. */
	spinlock_t lock;
	struct soft_recv *ring;
	u32 size, max_sge, head, tail;
	/* 0: not armed. */
	u32 limit;
	bool user;
};

/* A peer's RDMA READ: the part to be answered, from this PSN on; or its executed atomic operation. */
struct soft_reading {
	struct ib_sge memory;
	/* Value before the atomic operation. */
	u64 original;
	u32 psn, aeth;
	bool begun, atomic;
};

/* State of connections only, of unreliable ones the path, the PSNs and the message that is received. */
struct soft_connection {
	/* The path, as header fields; the peer's queue pair is destination_qpn. */
	struct fabric_headers path;
	u32 mtu;
	u8 ack_timeout, rnr_timer;
	/* Under sq_lock, with the members below. Sends before sq_next have PSNs, and all their packets were sent. */
	struct fabric_requester requester;
	u32 sq_next;
	/* While carrying: index of the send whose packet the engine carries, which reads it without the lock. */
	u32 carried;
	bool carrying;
	/*
	 * waiting: until the timer, for an RNR NAK. blocked: until a response or an acknowledgement, for a read, or for
	 * a local work request. executed: a local one.
	 */
	bool waiting, blocked, executed;
	/* Oldest unacknowledged packet when the timer was started. */
	u32 timed_psn;
	struct hrtimer timer;
	/* Status that the oldest send fails with, and the queue pair with it. */
	enum ib_wc_status failure;
	/* A flush has begun: all sends that are left complete as flushed. */
	bool flushing;
	/* Under rq_lock. */
	struct fabric_responder responder;
	struct soft_recv recv;
	bool recv_taken, killed, last_told, established_told;
	/* A request was refused, or failed: no more are executed, and the queue pair goes to ERROR. */
	bool refused;
	/* Message in progress, if it is an RDMA WRITE: the peer's view of this memory. */
	struct ib_sge written;
	/* Reads to be answered, oldest first; one is being answered. */
	struct soft_reading readings[FABRIC_MAX_READS];
	u8 reading_count, max_readings;
	bool answering;
	/* Answer after that: FABRIC_ANSWER or FABRIC_REFUSE; FABRIC_DISCARD: none. */
	enum fabric_verdict late;
	struct fabric_answer late_answer;
};

struct soft_qp {
	struct ib_qp ib;
	struct soft_hca *hca;
	/* Serialises modifications and queries. attr: the attributes that were set last. */
	struct mutex modify_lock;
	struct ib_qp_attr attr;
	enum ib_qp_state state;
	u32 qkey, psn;
	u16 pkey_index;
	/* Kind of the packets that it receives. */
	enum fabric_transport transport;
	/* user: the elements of its work requests have keys of regions. */
	bool signal_all, segments, user;
	/* Access granted to the peer: IB_ACCESS_REMOTE_*. */
	int access;
	struct soft_connection rc;
	struct ib_qp_cap cap;
	spinlock_t sq_lock;
	struct soft_send *sq;
	u32 sq_size, sq_head, sq_tail;
	spinlock_t rq_lock;
	struct soft_recv *rq;
	u32 rq_size, rq_head, rq_tail;
	size_t queue_bytes;
	struct soft_srq *srq;
	/* rdma_netdev that receives its unicast datagrams. */
	struct soft_filter __rcu *filter;
	/* On the HCA's list of QPs with work to do; under its active_lock. */
	struct list_head active;
	bool dying;
};

/* A queue pair's attachment to a group. */
struct soft_group {
	struct hlist_node entry;
	union ib_gid mgid;
	struct soft_qp *qp;
	struct rcu_head rcu;
};

/* Objects of verbs whose number is limited. */
enum soft_kind { SOFT_QPS, SOFT_CQS, SOFT_MRS, SOFT_PDS, SOFT_SRQS, SOFT_AHS, SOFT_KINDS };

struct soft_hca {
	struct ib_device ib;
	struct soft_slot *slot;
	atomic_t objects[SOFT_KINDS];
	struct soft_qp __rcu *smi, *gsi;
	struct xarray qps;
	u32 next_qpn, next_netdev_qpn;
	/* Numbers of programs' queue pairs: numbers.c. */
	struct xarray numbers;
	/* Memory regions, by the index in their keys. The lock guards those of fast registration. */
	struct xarray regions;
	rwlock_t regions_lock;
	u32 next_region;
	/* Attachments by MGID; their number, and that of different MGIDs. The lock is for changes; readers use RCU. */
	struct hlist_head groups[SOFT_GROUP_BUCKETS];
	u32 attachments, group_count;
	/* Random: programs choose MGIDs, and do not know which ones meet in a bucket. */
	u32 group_seed;
	spinlock_t groups_lock;
	struct tasklet_struct engine;
	struct hrtimer delay;
	/* Used by the engine: a datagram's payload as it is sent. */
	u8 staging[SOFT_MAX_FRAME];
	struct list_head active;
	spinlock_t active_lock;
	bool registered;
};

extern struct fabric *soft_fabric;
extern spinlock_t soft_fabric_lock;
extern struct soft_slot *soft_slots;
extern unsigned int soft_hca_count;
/* Number of the HCA in the first slot. */
extern unsigned int soft_first_hca;
/* Whether SRQs are supported, and SGEs in each of their receives. */
extern bool soft_have_srq;
extern unsigned int soft_srq_sges, soft_send_sges, soft_vectors;
/* Maximum number of an HCA's objects of each kind, but of address handles. */
extern unsigned int soft_max_objects;
enum { SOFT_MAX_OBJECTS = 1 << 16, SOFT_MAX_AHS = 1 << 16 };
/* Whether checksum and segmentation offload are supported. */
extern bool soft_have_offloads;
/* Virtual functions of each HCA. */
extern unsigned int soft_vf_count;
/* Whether the HCAs are virtual functions themselves. */
extern bool soft_are_functions;
/* rdma_netdev of IPoIB interfaces: none, one that replaces the client's datapath, one that filters it. */
enum { SOFT_NETDEV_NONE, SOFT_NETDEV_REPLACES, SOFT_NETDEV_FILTERS, SOFT_NETDEV_KINDS };
extern unsigned int soft_rdma_netdev;
/*
 * Bits for a width of lanes and all smaller ones, as in PortInfo, and for a speed (IB_SPEED_*) and lower ones; 0: there
 * is none.
 */
u8 soft_widths_up_to(u64 lanes);
u8 soft_speeds_up_to(u64 speed);
/* Guards plugging. */
extern struct mutex soft_plug_lock;

static inline unsigned int soft_number(const struct soft_slot *slot) { return soft_first_hca + slot->index; }

#define COUNT(slot, name) atomic64_inc(&(slot)->counters.name)

static inline struct soft_hca *to_hca(struct ib_device *ib) { return container_of(ib, struct soft_hca, ib); }
static inline struct soft_qp *to_qp(struct ib_qp *ib) { return container_of(ib, struct soft_qp, ib); }
static inline struct soft_srq *to_srq(struct ib_srq *ib) { return container_of(ib, struct soft_srq, ib); }
static inline struct soft_cq *to_cq(struct ib_cq *ib) { return container_of(ib, struct soft_cq, ib); }

/* device.c: counts a new object of the HCA; returns -ENOMEM if it has as many as it may. */
int soft_add_object(struct ib_device *ib, enum soft_kind kind);
void soft_remove_object(struct ib_device *ib, enum soft_kind kind);
int soft_plug(struct soft_slot *slot);
void soft_unplug(struct soft_slot *slot);
void soft_dispatch(struct soft_slot *slot, unsigned int events);
void soft_set_link(struct soft_slot *slot, bool up);
/* Limits the port to widths and speeds, as bits; 0: no change. The link comes up anew. CONTEXT: process. */
void soft_limit_link(struct soft_slot *slot, u8 widths, u8 speeds);
/* Sets an alias of the port: index 1 to FABRIC_GUIDS - 1; 0 removes it. */
void soft_set_alias(struct soft_slot *slot, unsigned int index, u64 guid);
/* All zeros if the port's table has none. */
union ib_gid soft_gid(const struct fabric_port *port, unsigned int index);

/* management.c: what agents do later, or at a certain time. */
void soft_management_start(void);
void soft_management_stop(void);
/* Begins and ends samples of counters that are due: before each MAD. Under soft_fabric_lock. */
void soft_sample(void);
/* Schedules what a MAD has requested. Under soft_fabric_lock. */
void soft_after_mad(void);
/* Carries out changes of links, and reports them to HCAs and subnet managers. CONTEXT: process. */
void soft_settle(void);

/* topology.c: switches and cables that parameters describe; their names; knobs of all switches. */
int soft_topology_plan(struct fabric_plan *plan);
void soft_topology_name(void);
void soft_topology_debugfs(struct dentry *root);

/* view.c */
void soft_view_debugfs(struct dentry *root);

/* cq.c */
extern const struct ib_device_ops soft_cq_ops;
/* An entry that does not fit is lost: the queue takes no more, and the queue pair moves to ERROR. */
void soft_cq_push(struct soft_cq *cq, const struct ib_wc *wc, bool solicited, struct list_head *due);
void soft_cq_raise(struct list_head *due);
/* Removes the QP's entries: it is being reset, or destroyed while user space may still poll them. */
void soft_cq_purge(struct ib_cq *ib, struct soft_qp *qp);

/* numbers.c. soft_numbered() returns a structure of which qp_num alone may be read, until the HCA ends. */
int soft_keep_number(struct soft_hca *hca, u32 number);
struct ib_qp *soft_numbered(struct soft_hca *hca, u32 number);
void soft_drop_numbers(struct soft_hca *hca);

/* queues.c */
extern const struct ib_device_ops soft_queue_ops;

/* Attachments to this group, and to others with the same hash. */
struct hlist_head *soft_groups_like(struct soft_hca *hca, const void *mgid);
/* Fields of the source and destination of a frame. */
void soft_set_route(struct fabric_headers *h, const struct rdma_ah_attr *attr, const struct fabric_port *port);
/* post.c */
extern const struct ib_device_ops soft_post_ops;
/* Fills in a receive from a work request, of user space or the kernel. */
void soft_record_recv(struct soft_hca *hca, struct soft_recv *recv, const struct ib_recv_wr *wr, bool user);

/* srq.c */
extern const struct ib_device_ops soft_srq_ops;
/* Takes the next receive; returns false if there is none. CONTEXT: softirq. */
bool soft_srq_take(struct soft_srq *srq, struct soft_recv *recv);

/* trunk.c: connections to other machines, over network interfaces of these names. */
int soft_trunks_start(char *const *names, unsigned int count);
void soft_trunks_stop(void);
void soft_trunks_debugfs(struct dentry *root);

/* vf.c */
extern const struct ib_device_ops soft_vf_ops;
int soft_bus_start(void);
void soft_bus_stop(void);
/* Device that the HCA of that number is a function of. */
struct device *soft_add_parent(unsigned int number);

/* netdev.c, netdev_filter.c */
extern const struct ib_device_ops soft_netdev_ops;
extern const struct ib_device_ops soft_filter_ops;
/* Result of a request for an rdma_netdev: 0, or the errno that a knob requests. */
int soft_netdev_may(struct ib_device *ib, enum rdma_netdev_t type);
/*
 * Turns an IPoIB datagram, which begins with its encapsulation and has 20 bytes of space before it, into the stack's
 * format: the hard header is a pseudo header, empty here, and the encapsulation.
 */
void soft_netdev_set_headers(struct sk_buff *skb);
/*
 * The settings of time stamps, of which the HCA makes none. By ioctl alone, as mlx5's up to 6.14, although kernels have
 * operations since 6.6.
 */
int soft_netdev_ioctl(struct net_device *dev, struct ifreq *request, int command);
enum { SOFT_PSEUDO_HEADER_BYTES = 20, SOFT_ENCAPSULATION_BYTES = 4 };

/* memory.c */
extern const struct ib_device_ops soft_memory_ops;
/* True if one of a kernel's elements has a region's key. */
bool soft_names_region(const struct ib_sge *sge, int count);

static inline bool soft_is_connected(const struct soft_qp *qp) { return qp->transport != FABRIC_DATAGRAM; }

/* rc.c */
void soft_rc_init(struct soft_qp *qp);
/* Applies a modify to the connection. */
void soft_rc_modify(struct soft_qp *qp, const struct ib_qp_attr *attr, int mask);
/* Afterwards no timer runs, and the engine does not use the queue pair. */
void soft_rc_stop(struct soft_qp *qp);
/*
 * Sends a message of this many bytes on every kernel connection that the HCA's end uses for receiving only, without
 * telling its consumer: a peer that breaks the protocol.
 */
void soft_rc_talk_back(struct soft_hca *hca, u32 bytes);
/* Breaks every connection of the HCA, as an error of its own would. */
void soft_rc_kill_all(struct soft_hca *hca);

/* engine.c */
void soft_engines_start(void);
/*
 * Waits until what engines do now is done: an object that was unlinked is then used no more. Waits for no grace period
 * of RCU, of which thousands of objects would take minutes. CONTEXT: process.
 */
void soft_wait_for_bursts(void);
void soft_engine_init(struct soft_hca *hca);
void soft_engine_stop(struct soft_hca *hca);
/* Schedules the engine for a QP with sends or flushes. CONTEXT: any. */
void soft_engine_kick(struct soft_qp *qp);
/* Delivers a frame as if from the switch. CONTEXT: process. */
void soft_inject(struct soft_slot *to, const struct fabric_headers *headers, const void *payload);
/* Sends the pending traps of all switches. CONTEXT: process. */
void soft_send_traps(void);

/* capture.c */
void soft_capture_start(struct dentry *dir);

/* debugfs.c */
void soft_debugfs_start(void);
void soft_debugfs_stop(void);
