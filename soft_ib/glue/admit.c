// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Arriving packets that a queue pair receives, by its state, its keys, and the faults that tests have switched on. */
#include "engine.h"

static int pkey_index_of(const struct fabric_port *port, u16 pkey)
{
	int i;

	for (i = 0; i < FABRIC_PKEYS; i++)
		if (fabric_pkeys_match(port->pkeys[i], pkey))
			return i;
	return -1;
}

static int admit(struct soft_slot *slot, struct soft_qp *qp, const struct fabric_headers *h)
{
	const struct fabric_port *port = fabric_hca_port(soft_fabric, slot->index);
	int index = 0;

	if (!soft_receives(qp)) {
		COUNT(slot, drop_no_qp);
		return -1;
	}
	if (qp->ib.qp_type == IB_QPT_SMI)
		return 0;
	if (qp->ib.qp_type == IB_QPT_GSI)
		index = pkey_index_of(port, h->pkey);
	else if (fabric_pkeys_match(port->pkeys[qp->pkey_index], h->pkey))
		index = qp->pkey_index;
	else
		index = -1;
	if (index < 0) {
		COUNT(slot, drop_pkey);
		return -1;
	}
	if (READ_ONCE(qp->qkey) != h->qkey) {
		COUNT(slot, drop_qkey);
		return -1;
	}
	return index;
}

bool soft_every(u32 every, atomic_t *counter) { return every && atomic_inc_return(counter) % every == 0; }

int soft_admit_datagram(struct soft_slot *slot, struct soft_qp *qp, const struct fabric_headers *h)
{
	bool management = qp->ib.qp_type != IB_QPT_UD;
	int pkey_index = admit(slot, qp, h);

	if (pkey_index < 0)
		return -1;
	/* All MADs are of one size. ib_mad posts no other receive for one that fails. */
	if (management && h->payload_bytes != FABRIC_MAD_BYTES) {
		COUNT(slot, drop_length);
		return -1;
	}
	if (!management && soft_every(READ_ONCE(slot->drop_every), &slot->dropped_of)) {
		COUNT(slot, drop_fault);
		return -1;
	}
	return pkey_index;
}

bool soft_admit_connected(struct soft_slot *slot, struct soft_qp *qp, const struct fabric_headers *h)
{
	if (admit(slot, qp, h) < 0)
		return false;
	if (!fabric_is_from_peer(h, &qp->rc.path, fabric_hca_port(soft_fabric, slot->index)->lmc)) {
		COUNT(slot, drop_source);
		return false;
	}
	if (soft_every(READ_ONCE(slot->drop_rc_every), &slot->rc_dropped_of)) {
		COUNT(slot, drop_fault);
		return false;
	}
	return true;
}
