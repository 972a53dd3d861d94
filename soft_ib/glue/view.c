// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * /sys/kernel/debug/soft_ib/ports: a line for each port of the plugged HCAs and switches, in columns. The script draw
 * makes a picture of it.
 */
#include "glue.h"
#include <linux/seq_file.h>

static const char *state_name(u8 state)
{
	switch (state) {
	case IB_PORT_INIT:
		return "init";
	case IB_PORT_ARMED:
		return "armed";
	case IB_PORT_ACTIVE:
		return "active";
	default:
		return "down";
	}
}

static void show_peer(struct seq_file *file, const struct fabric_port_view *view)
{
	char text[32] = "-";

	if (view->peer_kind == FABRIC_HCA)
		snprintf(text, sizeof(text), "hca%u.1", soft_first_hca + view->peer);
	else if (view->peer_kind == FABRIC_SWITCH)
		snprintf(text, sizeof(text), "switch%u.%u", view->peer, view->peer_port);
	else if (view->peer_kind == FABRIC_OTHER_MACHINE)
		snprintf(text, sizeof(text), "trunk%u", view->peer);
	seq_printf(file, "%-12s", text);
}

static void show_port(struct seq_file *file, const char *kind, unsigned int number, unsigned int port,
		      const struct fabric_port_view *view)
{
	char text[32];

	snprintf(text, sizeof(text), "%s%u.%u", kind, number, port);
	seq_printf(file, "%-12s", text);
	show_peer(file, view);
	seq_printf(file, "%-7s %5u %6d %5u %10llu %14llu %10llu %14llu %6u %s\n", state_name(view->port->state),
		   view->port->lid, ib_width_enum_to_int(view->port->active_width), view->port->active_speed,
		   view->sent_packets, view->sent_bytes, view->received_packets, view->received_bytes,
		   view->link_downed, view->name);
}

static int ports_show(struct seq_file *file, void *unused)
{
	unsigned int i, port, count = fabric_switches(soft_fabric);
	struct fabric_port_view view;

	seq_puts(file, "port        peer        state     lid  width speed       sent          bytes   received        "
		       "  bytes  downed name\n");
	for (i = 0; i < count; i++)
		for (port = 0;
		     fabric_has_switch(soft_fabric, i) && fabric_view_switch_port(soft_fabric, i, port, &view); port++)
			show_port(file, "switch", i, port, &view);
	for (i = 0; i < soft_hca_count; i++) {
		struct soft_slot *slot = &soft_slots[i];

		if (!rcu_access_pointer(slot->hca))
			continue;
		view = fabric_view_hca(soft_fabric, i);
		show_port(file, "hca", soft_number(slot), 1, &view);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(ports);

void soft_view_debugfs(struct dentry *root) { debugfs_create_file("ports", 0444, root, NULL, &ports_fops); }
