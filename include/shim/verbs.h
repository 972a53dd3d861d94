/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Verbs: protection domain, completion queues, the UD queue pair, work requests, completions, address handles. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct ib_device;
struct ib_pd;
struct ib_cq;
struct ib_qp;
struct ib_ah;
struct sa_path_rec;
/* Storage of these is embedded; sizes in <generated/layout.h>. */
struct shim_send_wr;
struct shim_recv_wr;
struct shim_wc;
struct shim_event_handler;

struct shim_gid {
	uint8_t raw[16];
};

struct shim_port {
	bool active;
	uint16_t lid;
	uint8_t lmc;
	/* Bytes. */
	unsigned int max_mtu, active_mtu;
	/* As PortInfo has them (IBA 14.2.5.6). */
	unsigned int speed, width;
};

/* A scatter/gather element; the same layout as struct ib_sge. */
struct shim_sge {
	uint64_t address;
	uint32_t length;
	uint32_t lkey;
};

/* Where a datagram goes, when no path record tells: multicast. */
struct shim_ah_attributes {
	uint32_t port;
	uint16_t dlid;
	uint8_t sl;
	/* A rate as the SA encodes it (IBA 15.2.5.16). */
	uint8_t rate;
	uint8_t traffic_class, hop_limit;
	uint32_t flow_label;
	/* In the port's table: whom it comes from. */
	uint8_t sgid_index;
	struct shim_gid dgid;
};

const char *shim_ib_device_name(const struct ib_device *ca);
unsigned int shim_ib_max_send_sge(const struct ib_device *ca);
/* What an HCA can do for datagrams: gather elements, do checksums of TCP and UDP over IPv4, cut TCP into segments. */
enum shim_ability {
	SHIM_CAN_GATHER = 1,
	SHIM_CAN_CHECKSUM = 2,
	SHIM_CAN_SEGMENT = 4,
	/* It is a virtual function itself. */
	SHIM_IS_FUNCTION = 8,
	/* Not what an HCA can: the driver cuts TCP into segments, and fills in checksums that the stack left open. */
	SHIM_CUT_BY_DRIVER = 16,
};
unsigned int shim_ib_abilities(const struct ib_device *ca);
unsigned int shim_ib_comp_vectors(const struct ib_device *ca);
/* CONTEXT: process. */
int shim_ib_query_port(struct ib_device *ca, uint32_t port, struct shim_port *attributes);
/* ib_core's copy, which it makes anew when the HCA reports a change. */
int shim_ib_query_gid(struct ib_device *ca, uint32_t port, int index, struct shim_gid *gid);
/* The HCA's own answer. */
int shim_ib_query_port_gid(struct ib_device *ca, uint32_t port, int index, struct shim_gid *gid);
/*
 * Reports on behalf of the HCA that the port's GIDs have changed: ib_core copies them a moment later, and passes no
 * event to its clients.
 */
void shim_ib_report_gid_change(struct ib_device *ca, uint32_t port);
/* CONTEXT: any. */
int shim_ib_find_gid(struct ib_device *ca, uint32_t port, const struct shim_gid *gid, uint16_t *index);
int shim_ib_query_pkey(struct ib_device *ca, uint32_t port, uint16_t index, uint16_t *pkey);
int shim_ib_find_pkey(struct ib_device *ca, uint32_t port, uint16_t pkey, uint16_t *index);
/* In the RDMA core's copy of the table: the HCA is not asked. CONTEXT: any. */
int shim_ib_find_cached_pkey(struct ib_device *ca, uint32_t port, uint16_t pkey, uint16_t *index);

/* Pointers that can be an error: 0 or the negative errno. */
int shim_pointer_error(const void *pointer);

struct ib_pd *shim_pd_create(struct ib_device *ca);
void shim_pd_destroy(struct ib_pd *pd);
uint32_t shim_pd_lkey(const struct ib_pd *pd);

/* completed(context) is called from interrupt or softirq context when an armed queue gets an entry. */
struct ib_cq *shim_cq_create(struct ib_device *ca, unsigned int entries, unsigned int vector,
			     void (*completed)(struct ib_cq *cq, void *context), void *context);
void shim_cq_destroy(struct ib_cq *cq);
/* Entries taken, or a negative errno. */
int shim_cq_poll(struct ib_cq *cq, int entries, struct shim_wc *wc);
/* An event after so many entries or microseconds; -EOPNOTSUPP: the HCA can't. */
int shim_cq_moderate(struct ib_cq *cq, unsigned int entries, unsigned int usecs);
/* Asks for the next event. True: none comes, as entries are there already or the HCA does not take it; poll again. */
bool shim_cq_arm(struct ib_cq *cq);

struct shim_wc *shim_wc_at(struct shim_wc *wc, int index);
uint64_t shim_wc_id(const struct shim_wc *wc);
bool shim_wc_ok(const struct shim_wc *wc);
/* The work request was thrown out because the queue pair left service. */
bool shim_wc_flushed(const struct shim_wc *wc);
int shim_wc_status(const struct shim_wc *wc);
unsigned int shim_wc_vendor_error(const struct shim_wc *wc);
/* What the queue pair that the completion is for was created with. */
void *shim_wc_qp_context(const struct shim_wc *wc);
/* Of a received datagram: bytes with the 40 of the GRH, which is valid only if wc_has_grh. */
unsigned int shim_wc_bytes(const struct shim_wc *wc);
bool shim_wc_has_grh(const struct shim_wc *wc);
bool shim_wc_checksum_ok(const struct shim_wc *wc);
uint32_t shim_wc_source_qpn(const struct shim_wc *wc);
uint16_t shim_wc_slid(const struct shim_wc *wc);

struct ib_qp *shim_qp_create(struct ib_pd *pd, struct ib_cq *send_cq, struct ib_cq *recv_cq, unsigned int send_wrs,
			     unsigned int recv_wrs, unsigned int send_sges);
void shim_qp_destroy(struct ib_qp *qp);
uint32_t shim_qp_number(const struct ib_qp *qp);
/* CONTEXT: process. */
int shim_qp_to_init(struct ib_qp *qp, uint32_t port, uint16_t pkey_index, uint32_t qkey);
int shim_qp_to_rtr(struct ib_qp *qp);
int shim_qp_to_rts(struct ib_qp *qp);
int shim_qp_to_error(struct ib_qp *qp);
int shim_qp_to_reset(struct ib_qp *qp);
/* From "send queue error" back to service; -EINVAL when that is not its state. */
int shim_qp_recover_send(struct ib_qp *qp);
int shim_qp_set_qkey(struct ib_qp *qp, uint32_t qkey);
int shim_qp_attach(struct ib_qp *qp, const struct shim_gid *mgid, uint16_t mlid);
void shim_qp_detach(struct ib_qp *qp, const struct shim_gid *mgid, uint16_t mlid);

/* Builds a send in its slot: once, then what differs per packet; a datagram, or a message on a connection. */
void shim_send_wr_init(struct shim_send_wr *wr, uint64_t id, struct shim_sge *sges);
void shim_send_wr_set_datagram(struct shim_send_wr *wr, unsigned int sges, struct ib_ah *ah, uint32_t qpn,
			       uint32_t qkey);
/* The datagram's data is cut into segments of so many bytes, each behind a copy of the headers, made to fit it. */
void shim_send_wr_set_segments(struct shim_send_wr *wr, void *headers, unsigned int header_bytes,
			       unsigned int segment_bytes);
void shim_send_wr_set_message(struct shim_send_wr *wr, unsigned int sges);
/* It reports its completion; the HCA fills in the checksum. */
void shim_send_wr_set_flags(struct shim_send_wr *wr, bool signaled, bool checksum);
void shim_send_wr_signal(struct shim_send_wr *wr);
/* next may be NULL. */
void shim_send_wr_set_next(struct shim_send_wr *wr, struct shim_send_wr *next);
/* CONTEXT: any. Posts the chain. After an error, none from the refused one on was taken. refused may be NULL. */
int shim_post_send(struct ib_qp *qp, struct shim_send_wr *first, struct shim_send_wr **refused);

void shim_recv_wr_init(struct shim_recv_wr *wr, uint64_t id, struct shim_sge *sges, unsigned int count);
void shim_recv_wr_set_next(struct shim_recv_wr *wr, struct shim_recv_wr *next);
struct shim_recv_wr *shim_recv_wr_next(const struct shim_recv_wr *wr);
/* CONTEXT: any. Posts the chain. After an error, none from the refused one on was taken; NULL: the HCA is silent. */
int shim_post_recv(struct ib_qp *qp, struct shim_recv_wr *first, struct shim_recv_wr **refused);

/* Device addresses. map: 0 when it failed is told by shim_dma_failed. */
uint64_t shim_dma_map_to_device(struct ib_device *ca, void *address, size_t bytes);
void shim_dma_unmap_to_device(struct ib_device *ca, uint64_t address, size_t bytes);
uint64_t shim_dma_map_frag(struct ib_device *ca, const struct sk_buff *skb, unsigned int frag);
void shim_dma_unmap_frag(struct ib_device *ca, uint64_t address, size_t bytes);
uint64_t shim_dma_map_from_device(struct ib_device *ca, void *address, size_t bytes);
void shim_dma_unmap_from_device(struct ib_device *ca, uint64_t address, size_t bytes);
/* Between these the CPU may read what the device wrote, while the mapping stays. */
void shim_dma_sync_for_cpu(struct ib_device *ca, uint64_t address, size_t bytes);
void shim_dma_sync_for_device(struct ib_device *ca, uint64_t address, size_t bytes);
bool shim_dma_failed(struct ib_device *ca, uint64_t address);

/* An error pointer on failure. CONTEXT: process, may sleep. */
struct ib_ah *shim_ah_create(struct ib_pd *pd, const struct shim_ah_attributes *attributes);
struct ib_ah *shim_ah_create_from_path(struct ib_pd *pd, uint32_t port, struct sa_path_rec *record);
void shim_ah_destroy(struct ib_ah *ah);

enum shim_event {
	SHIM_EVENT_OTHER,
	SHIM_EVENT_CLIENT_REREGISTER,
	SHIM_EVENT_PORT_ERROR,
	SHIM_EVENT_PORT_ACTIVE,
	SHIM_EVENT_LID_CHANGE,
	SHIM_EVENT_PKEY_CHANGE,
	SHIM_EVENT_GID_CHANGE,
};
void shim_events_start(struct ib_device *ca, struct shim_event_handler *handler,
		       void (*on_event)(void *context, enum shim_event event, uint32_t port), void *context);
void shim_events_stop(struct shim_event_handler *handler);

SHIM_END
