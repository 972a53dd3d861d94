/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The boundary between the fabric's protocol logic (C++, also built on the host for its tests) and the glue that makes
 * it HCAs of the running kernel (C). The logic is independent of queue pairs, memory and time: it answers MADs, routes
 * frames and keeps the state of ports. Calls that change state are serialised by the caller; routing and counting are
 * not, and read the current state, as a switch would.
 *
 * HCA i (from 0) has one port, which is joined to port i + 1 of a switch. The switch's own port is 0. With two subnets,
 * HCAs of even numbers are at one switch, the others at another, and the two are not joined. The first switch may have
 * trunks at the ports after those of its HCAs: cables to the switches of other machines. A plan may describe other
 * switches and cables.
 */
#pragma once
#ifdef __cplusplus
#include <cstddef>
#include <cstdint>
extern "C" {
#else
#include <linux/types.h>
#endif

/* constexpr in C++, which computes tables from these functions at compile time. */
#ifdef __cplusplus
#define FABRIC_INLINE constexpr
#else
#define FABRIC_INLINE inline
#endif

#ifdef __clang__
#define ENTRY
#else
#define ENTRY __attribute__((externally_visible))
#endif

enum {
	FABRIC_MAX_HCAS = 40,
	FABRIC_MAX_SUBNETS = 2,
	FABRIC_MAX_SWITCHES = 32,
	FABRIC_MAX_TRUNKS = 8,
	/* Ports of a switch, without its own. */
	FABRIC_MAX_SWITCH_PORTS = FABRIC_MAX_HCAS + FABRIC_MAX_TRUNKS,
	FABRIC_PKEYS = 128,
	FABRIC_GUIDS = 8,
	FABRIC_MAD_BYTES = 256,
	/* LRH, GRH, BTH, and of the rest at most an AtomicETH. */
	FABRIC_MAX_HEADER_BYTES = 8 + 40 + 12 + 28,
	FABRIC_PSN_MASK = 0xffffff,
	FABRIC_PERMISSIVE_LID = 0xffff,
	FABRIC_FIRST_MULTICAST_LID = 0xc000,
	/* Ingress of frames that arrived by the first trunk; those of the others follow. */
	FABRIC_TRUNK = 0xff00,
	/* Ingress of frames at a switch: with its number in bits 15:8, and the port's below. */
	FABRIC_AT_SWITCH = 1 << 16,
	/* RDMA READs and atomic operations in flight on a connection, and bytes of a message. */
	FABRIC_MAX_READS = 16,
	FABRIC_MAX_MESSAGE_BYTES = 1 << 30,
};

struct fabric;

/* Events for an HCA's driver, as bits. */
enum fabric_events {
	FABRIC_LID_CHANGE = 1 << 0,
	FABRIC_SM_CHANGE = 1 << 1,
	FABRIC_PKEY_CHANGE = 1 << 2,
	FABRIC_GID_CHANGE = 1 << 3,
	FABRIC_PORT_ACTIVE = 1 << 4,
	FABRIC_PORT_ERROR = 1 << 5,
	FABRIC_REREGISTER = 1 << 6,
};

struct fabric_port {
	/* The first is the port's own, others are aliases; 0: none. A GID is the prefix and one GUID. */
	uint64_t guids[FABRIC_GUIDS];
	uint64_t subnet_prefix;
	uint32_t capabilities;
	uint16_t lid, sm_lid;
	uint16_t pkeys[FABRIC_PKEYS];
	/* As in PortInfo: 1 down, 2 initialise, 3 armed, 4 active; 5 link up, 2 polling. */
	uint8_t state, physical_state;
	uint8_t lmc, sm_sl, subnet_timeout;
	/* As in PortInfo: 4 is 2048 bytes, 5 is 4096. */
	uint8_t mtu;
	/*
	 * Width and speed of the link, or of the last one if it is down: LinkWidthActive; LinkSpeedActive, or
	 * LinkSpeedExtActive shifted by four bits.
	 */
	uint8_t active_width, active_speed;
	/* VLCap of PortInfo: 1 is one data lane, 5 is 15 lanes. */
	uint8_t vls_supported;
};

/* Kind of a packet: the BTH's opcode (IBA 9.2.1). */
enum fabric_opcode {
	FABRIC_RC_SEND_FIRST = 0x00,
	FABRIC_RC_SEND_MIDDLE = 0x01,
	FABRIC_RC_SEND_LAST = 0x02,
	FABRIC_RC_SEND_LAST_IMMEDIATE = 0x03,
	FABRIC_RC_SEND_ONLY = 0x04,
	FABRIC_RC_SEND_ONLY_IMMEDIATE = 0x05,
	FABRIC_RC_WRITE_FIRST = 0x06,
	FABRIC_RC_WRITE_MIDDLE = 0x07,
	FABRIC_RC_WRITE_LAST = 0x08,
	FABRIC_RC_WRITE_LAST_IMMEDIATE = 0x09,
	FABRIC_RC_WRITE_ONLY = 0x0a,
	FABRIC_RC_WRITE_ONLY_IMMEDIATE = 0x0b,
	FABRIC_RC_READ_REQUEST = 0x0c,
	FABRIC_RC_READ_RESPONSE_FIRST = 0x0d,
	FABRIC_RC_READ_RESPONSE_MIDDLE = 0x0e,
	FABRIC_RC_READ_RESPONSE_LAST = 0x0f,
	FABRIC_RC_READ_RESPONSE_ONLY = 0x10,
	FABRIC_RC_ACKNOWLEDGE = 0x11,
	FABRIC_RC_ATOMIC_ACKNOWLEDGE = 0x12,
	FABRIC_RC_COMPARE_SWAP = 0x13,
	FABRIC_RC_FETCH_ADD = 0x14,
	FABRIC_RC_SEND_LAST_INVALIDATE = 0x16,
	FABRIC_RC_SEND_ONLY_INVALIDATE = 0x17,
	/* Added to opcodes of sends and writes on unreliable connections. */
	FABRIC_UC = 0x20,
	FABRIC_UD_SEND_ONLY = 0x64,
	FABRIC_UD_SEND_ONLY_IMMEDIATE = 0x65,
};

/* Opcodes of connections as sets: bit n is opcode n, with FABRIC_UC or without. */
enum fabric_opcode_set {
	FABRIC_ATOMICS = 1 << FABRIC_RC_COMPARE_SWAP | 1 << FABRIC_RC_FETCH_ADD,
	/* Requests of one packet that have a response. */
	FABRIC_WITH_RESPONSE = FABRIC_ATOMICS | 1 << FABRIC_RC_READ_REQUEST,
	FABRIC_BEGIN_MESSAGES = 1 << FABRIC_RC_SEND_FIRST | 1 << FABRIC_RC_SEND_ONLY |
				1 << FABRIC_RC_SEND_ONLY_IMMEDIATE | 1 << FABRIC_RC_SEND_ONLY_INVALIDATE |
				1 << FABRIC_RC_WRITE_FIRST | 1 << FABRIC_RC_WRITE_ONLY |
				1 << FABRIC_RC_WRITE_ONLY_IMMEDIATE | FABRIC_WITH_RESPONSE,
	FABRIC_END_MESSAGES = 1 << FABRIC_RC_SEND_LAST | 1 << FABRIC_RC_SEND_LAST_IMMEDIATE |
			      1 << FABRIC_RC_SEND_LAST_INVALIDATE | 1 << FABRIC_RC_SEND_ONLY |
			      1 << FABRIC_RC_SEND_ONLY_IMMEDIATE | 1 << FABRIC_RC_SEND_ONLY_INVALIDATE |
			      1 << FABRIC_RC_WRITE_LAST | 1 << FABRIC_RC_WRITE_LAST_IMMEDIATE |
			      1 << FABRIC_RC_WRITE_ONLY | 1 << FABRIC_RC_WRITE_ONLY_IMMEDIATE | FABRIC_WITH_RESPONSE,
	FABRIC_WRITES = 1 << FABRIC_RC_WRITE_FIRST | 1 << FABRIC_RC_WRITE_MIDDLE | 1 << FABRIC_RC_WRITE_LAST |
			1 << FABRIC_RC_WRITE_LAST_IMMEDIATE | 1 << FABRIC_RC_WRITE_ONLY |
			1 << FABRIC_RC_WRITE_ONLY_IMMEDIATE,
	FABRIC_REQUESTS =
		FABRIC_BEGIN_MESSAGES | FABRIC_END_MESSAGES | 1 << FABRIC_RC_SEND_MIDDLE | 1 << FABRIC_RC_WRITE_MIDDLE,
	FABRIC_RESPONSES = 1 << FABRIC_RC_READ_RESPONSE_FIRST | 1 << FABRIC_RC_READ_RESPONSE_MIDDLE |
			   1 << FABRIC_RC_READ_RESPONSE_LAST | 1 << FABRIC_RC_READ_RESPONSE_ONLY |
			   1 << FABRIC_RC_ATOMIC_ACKNOWLEDGE,
	/* Headers behind the BTH, beside those of FABRIC_ATOMICS: a RETH, an AETH, immediate data, an IETH. */
	FABRIC_WITH_RETH = 1 << FABRIC_RC_WRITE_FIRST | 1 << FABRIC_RC_WRITE_ONLY |
			   1 << FABRIC_RC_WRITE_ONLY_IMMEDIATE | 1 << FABRIC_RC_READ_REQUEST,
	FABRIC_WITH_AETH = (FABRIC_RESPONSES & ~(1 << FABRIC_RC_READ_RESPONSE_MIDDLE)) | 1 << FABRIC_RC_ACKNOWLEDGE,
	FABRIC_WITH_IMMEDIATE = 1 << FABRIC_RC_SEND_LAST_IMMEDIATE | 1 << FABRIC_RC_SEND_ONLY_IMMEDIATE |
				1 << FABRIC_RC_WRITE_LAST_IMMEDIATE | 1 << FABRIC_RC_WRITE_ONLY_IMMEDIATE,
	FABRIC_WITH_IETH = 1 << FABRIC_RC_SEND_LAST_INVALIDATE | 1 << FABRIC_RC_SEND_ONLY_INVALIDATE,
};
static FABRIC_INLINE bool fabric_in(uint8_t opcode, uint32_t set)
{
	return opcode < 2 * FABRIC_UC && (set >> (opcode & 31) & 1);
}
/* The transport of a packet: the upper bits of its opcode. */
enum fabric_transport { FABRIC_RELIABLE = 0, FABRIC_UNRELIABLE = 1, FABRIC_DATAGRAM = 3 };
static FABRIC_INLINE unsigned int fabric_transport_of(uint8_t opcode) { return opcode >> 5; }
static FABRIC_INLINE bool fabric_is_datagram(uint8_t opcode)
{
	return opcode == FABRIC_UD_SEND_ONLY || opcode == FABRIC_UD_SEND_ONLY_IMMEDIATE;
}
/* The packet that starts a message, and the one that ends it. */
static inline bool fabric_begins(uint8_t opcode) { return fabric_in(opcode, FABRIC_BEGIN_MESSAGES); }
static inline bool fabric_ends(uint8_t opcode) { return fabric_in(opcode, FABRIC_END_MESSAGES); }
static FABRIC_INLINE bool fabric_has_immediate(uint8_t opcode)
{
	return opcode == FABRIC_UD_SEND_ONLY_IMMEDIATE || fabric_in(opcode, FABRIC_WITH_IMMEDIATE);
}

/* The fields of a packet's headers (IBA 7.7, 8.3, 9.2, 9.3). */
struct fabric_headers {
	uint16_t slid, dlid, pkey;
	uint8_t sl;
	bool grh;
	uint8_t traffic_class, hop_limit;
	uint32_t flow_label;
	uint8_t sgid[16], dgid[16];
	/* Value of enum fabric_opcode. */
	uint8_t opcode;
	bool solicited, ack_request;
	uint32_t destination_qpn, psn;
	/* DETH, of datagrams only. */
	uint32_t source_qpn, qkey;
	/*
	 * AETH of acknowledgements and of responses to reads: syndrome in the top 8 bits, message sequence number below
	 * (IBA 9.7.5.1.2).
	 */
	uint32_t aeth;
	/* RETH: the peer's memory to be written or read (IBA 9.3.3); AtomicETH: the same without the length. */
	uint64_t remote_address;
	uint32_t remote_key, remote_bytes;
	/*
	 * AtomicETH: the value to be stored or added, and the one to be compared (IBA 9.3.4). AtomicAckETH: the value
	 * before, in the first of them.
	 */
	uint64_t operand, compare;
	/* Immediate data, or the IETH: the peer's key that a send invalidates (IBA 9.3.6). */
	uint32_t immediate;
	uint32_t payload_bytes;
};

/*
 * Destinations of a frame: HCAs and trunks (bit i is number i), a switch's own port, or none. to_switch: 0, or the
 * ingress by which it arrived there. sent_words: words of 4 bytes on the cable of its HCA; 0: it does not leave that.
 */
struct fabric_route {
	uint64_t hcas;
	uint32_t to_switch;
	uint8_t trunks;
	uint32_t sent_words;
};

/* A cable from a port of a switch to one of another switch, or to an HCA, whose port is 0 here. */
struct fabric_cable {
	uint8_t node, port, peer, peer_port;
};

struct fabric_plan {
	/* The numbers of HCAs and switches are part of their GUIDs: those of joined machines must differ. */
	unsigned int hcas, first_hca, subnets;
	/* As in PortInfo; the widths and speeds that all ports support, as bits of the values above. */
	uint8_t mtu, widths, speeds, vls;
	uint8_t trunks;
	/* Switches other than those described above: their number, their numbers of ports, and all cables; or 0. */
	unsigned int switches, cable_count;
	const uint8_t *switch_ports;
	const struct fabric_cable *cables;
};

/* Result of a check of a plan's cables: the number of a wrong one, or cable_count. */
ENTRY unsigned int fabric_wrong_cable(const struct fabric_plan *plan);
ENTRY size_t fabric_bytes(void);
/* Initialises the fabric, in memory of fabric_bytes(). All links are down. */
ENTRY void fabric_construct(struct fabric *fabric, const struct fabric_plan *plan);

/* GUID of the HCA with that number, on any machine. */
ENTRY uint64_t fabric_guid(unsigned int number);
ENTRY const struct fabric_port *fabric_hca_port(const struct fabric *fabric, unsigned int hca);
ENTRY void fabric_set_capabilities(struct fabric *fabric, unsigned int hca, uint32_t set, uint32_t clear);
/* Replaces the HCA by another one: its port has no configuration. */
ENTRY void fabric_renew_hca(struct fabric *fabric, unsigned int hca);
/* The HCA's name, up to 63 characters, for NodeDescription. */
ENTRY void fabric_set_description(struct fabric *fabric, unsigned int hca, const char *text);

/* Gives the port an alias, or takes it away (0). Returns events for the HCA. The index is 1 to FABRIC_GUIDS - 1. */
ENTRY unsigned int fabric_set_alias(struct fabric *fabric, unsigned int hca, unsigned int index, uint64_t guid);

/* Connects or disconnects the cable. Returns events for the HCA. */
ENTRY unsigned int fabric_set_link(struct fabric *fabric, unsigned int hca, bool up);
/*
 * Sets the widths and speeds that the HCA's port supports, as bits; 0: no change. The link comes up anew. Returns
 * events for the HCA.
 */
ENTRY unsigned int fabric_limit_link(struct fabric *fabric, unsigned int hca, uint8_t widths, uint8_t speeds);
/* True if a MAD has requested that links go down or come up anew, which fabric_settle() does. */
ENTRY bool fabric_unsettled(const struct fabric *fabric);
/*
 * Carries out these requests, after the answer has left. Returns true with the number of one HCA and events for it:
 * call again; false: there are none.
 */
ENTRY bool fabric_settle(struct fabric *fabric, unsigned int *hca, unsigned int *events);

/* Number of switches; they have the numbers from 0 on. */
ENTRY unsigned int fabric_switches(const struct fabric *fabric);
/* The switch's name, up to 63 characters, for NodeDescription. */
ENTRY void fabric_name_switch(struct fabric *fabric, unsigned int number, const char *name);
/*
 * Connects or disconnects the cable at a port of a switch. Returns false if the port has none, or a trunk. Events for
 * HCAs are those of fabric_settle().
 */
ENTRY bool fabric_set_cable(struct fabric *fabric, unsigned int number, unsigned int port, bool up);
/* False: the switch is removed. */
ENTRY bool fabric_has_switch(const struct fabric *fabric, unsigned int number);
/*
 * Removes a switch, or inserts one without configuration. Returns false for the switch of trunks, which stays.
 * Events for HCAs are those of fabric_settle().
 */
ENTRY bool fabric_plug_switch(struct fabric *fabric, unsigned int number, bool plugged);
/* The machine at the other end of a trunk is reachable, or not any more. */
ENTRY void fabric_set_trunk(struct fabric *fabric, unsigned int trunk, bool up);
/* Node at the other end of a cable. */
enum fabric_peer_kind { FABRIC_NOTHING, FABRIC_HCA, FABRIC_SWITCH, FABRIC_OTHER_MACHINE };
/* A port and its cable. peer is the number of the HCA, switch or trunk, peer_port its port. */
struct fabric_port_view {
	const char *name;
	const struct fabric_port *port;
	enum fabric_peer_kind peer_kind;
	uint8_t peer, peer_port;
	/* Counters since the port was created or reset by PMA; bytes from LRH to ICRC. */
	uint64_t sent_packets, received_packets, sent_bytes, received_bytes;
	uint32_t link_downed;
};
ENTRY struct fabric_port_view fabric_view_hca(const struct fabric *fabric, unsigned int hca);
/* Returns false if the switch does not have the port; port 0 is its own. */
ENTRY bool fabric_view_switch_port(const struct fabric *fabric, unsigned int number, unsigned int port,
				   struct fabric_port_view *view);

/*
 * Handles a MAD that arrived at an HCA. Returns true if reply holds the answer to be sent; false: it is for another
 * agent (the subnet manager, an agent in user space). events: bits for the HCA.
 */
ENTRY bool fabric_hca_mad(struct fabric *fabric, unsigned int hca, const uint8_t *mad, uint8_t *reply,
			  unsigned int *events);
/*
 * Handles a MAD frame that arrived at a switch: that of HCA ingress, or as described by a route's to_switch. Returns
 * true if mad and headers have become a frame to be sent to route: the answer, or the same frame, forwarded.
 */
ENTRY bool fabric_switch_mad(struct fabric *fabric, unsigned int ingress, struct fabric_headers *headers, uint8_t *mad,
			     struct fabric_route *route);
/*
 * Returns a trap of a switch for its subnet manager, as above; false: none can be sent now; one that cannot be
 * forwarded remains pending.
 */
ENTRY bool fabric_switch_trap(struct fabric *fabric, struct fabric_headers *headers, uint8_t *mad,
			      struct fabric_route *route);

/*
 * Sets the time, in nanoseconds, and begins and ends the samples of counters that are due. Called before and after each
 * MAD. Returns the time until the next call, or 0: no sample is in progress.
 */
ENTRY uint64_t fabric_sample(struct fabric *fabric, uint64_t now);

/* Converts frames to wire bytes and back. Both return the number of bytes; parse returns 0 for other packets. */
ENTRY unsigned int fabric_build_headers(const struct fabric_headers *headers, uint8_t *wire);
ENTRY unsigned int fabric_parse_headers(const uint8_t *wire, unsigned int bytes, struct fabric_headers *headers);

/*
 * Routes a frame from HCA ingress, by the switches' tables; SMPs by directed route go to the switch. Counts it as sent,
 * unless it never leaves the HCA. The bit of ingress itself: to its own queue pairs. Frames to QP0 from other queue
 * pairs have no route, here and below.
 */
ENTRY struct fabric_route fabric_route_frame(struct fabric *fabric, unsigned int ingress,
					     const struct fabric_headers *headers);
/* Routes a frame that arrived by a trunk. Counts it. One with more payload than the port's MTU has no route. */
ENTRY struct fabric_route fabric_route_from_trunk(struct fabric *fabric, unsigned int trunk,
						  const struct fabric_headers *headers);
/*
 * True if the HCA's link is up, and the DLID is a group's; or it is permissive or the port's own, and so is the DGID,
 * if there is one. False for frames to QP0 from other queue pairs.
 */
ENTRY bool fabric_accepts(const struct fabric *fabric, unsigned int hca, const struct fabric_headers *headers);
/* Counts a frame that arrived by cable, at both ends. */
ENTRY void fabric_count_received(struct fabric *fabric, unsigned int hca, const struct fabric_headers *headers);

/*
 * Offloads for the IPv4 packet inside an IPoIB datagram, whose payload begins with the encapsulation. fill: completes
 * the checksum of TCP or UDP; returns false for other packets, which are unchanged.
 */
ENTRY bool fabric_fill_checksums(uint8_t *payload, uint32_t bytes);
/* True if it is such a packet, no fragment, and the checksums of IP and of TCP or UDP are correct. */
ENTRY bool fabric_checksums_hold(const uint8_t *payload, uint32_t bytes);
/*
 * The payload has a large TCP packet's headers and the part of its data that begins at offset: turns it into the
 * segment of that index, checksums included.
 */
ENTRY void fabric_make_segment(uint8_t *payload, uint32_t bytes, uint32_t index, uint32_t offset, bool last);

/* Capture: a packet as a record of an ERF file, type InfiniBand. */
enum {
	FABRIC_RECORD_HEADER_BYTES = 16,
	/* The record's own header, the packet's, pad, ICRC and VCRC. */
	FABRIC_MAX_AROUND_PAYLOAD = FABRIC_RECORD_HEADER_BYTES + FABRIC_MAX_HEADER_BYTES + 3 + 4 + 2,
};
struct fabric_sighting {
	/* Nanoseconds since 1970. */
	uint64_t nanoseconds;
	/* Packets dropped for lack of space since the last record. */
	uint16_t lost;
	/* Sent by the switch, not by an HCA here: ERF's interface 1, otherwise 0. */
	bool by_switch;
};
/* Writes a record to memory of FABRIC_MAX_AROUND_PAYLOAD and the payload. Returns its bytes. */
ENTRY uint32_t fabric_make_record(const struct fabric_sighting *sighting, const struct fabric_headers *headers,
				  const uint8_t *payload, uint8_t *record);

/* True for two P_Keys of one partition, at least one of them a full member's (IBA 10.9.3). */
ENTRY bool fabric_pkeys_match(uint16_t a, uint16_t b);

#ifdef __cplusplus
}
#endif
