// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Switches and cables as parameters describe them, and faults of both. The script topology makes the parameters from a
 * file. /sys/kernel/debug/soft_ib/switch<n>/ has the knobs.
 */
#include "glue.h"
#include <linux/module.h>
#include <linux/uaccess.h>

enum { MAX_CABLES = FABRIC_MAX_HCAS + FABRIC_MAX_SWITCHES * FABRIC_MAX_SWITCH_PORTS / 2 };

/* Without files in sysfs, in which long lists have no space. */
static char *switches[FABRIC_MAX_SWITCHES];
static unsigned int switch_count;
module_param_array(switches, charp, &switch_count, 0);
MODULE_PARM_DESC(switches, "Switches: numbers of ports, each with an optional colon and name (default: one switch)");

static char *cables[MAX_CABLES];
static unsigned int cable_count;
module_param_array(cables, charp, &cable_count, 0);
MODULE_PARM_DESC(cables, "With switches: cables between ports of switches (0.2-1.5), and to HCAs (0.1-h3)");

static u8 switch_ports[FABRIC_MAX_SWITCHES];
static struct fabric_cable parsed[MAX_CABLES];

static int parse_switch(unsigned int number)
{
	unsigned int ports;
	char end;
	/* Digits are limited: larger numbers would be taken modulo 2^32. */
	int fields = sscanf(switches[number], "%2u%c", &ports, &end);

	if (fields < 1 || (fields == 2 && end != ':') || ports < 1 || ports > FABRIC_MAX_SWITCH_PORTS) {
		pr_err("soft_ib: switches=%s is not 1 to %u ports, and a name\n", switches[number],
		       FABRIC_MAX_SWITCH_PORTS);
		return -EINVAL;
	}
	switch_ports[number] = ports;
	return 0;
}

static int parse_cable(const char *text, struct fabric_cable *cable)
{
	unsigned int node, port, peer, peer_port = 0;
	char end;

	/* Port 0 of the peer stands for an HCA in struct fabric_cable. */
	if (sscanf(text, "%3u.%3u-h%3u%c", &node, &port, &peer, &end) != 3 &&
	    (sscanf(text, "%3u.%3u-%3u.%3u%c", &node, &port, &peer, &peer_port, &end) != 4 || !peer_port))
		return -EINVAL;
	if (max(max(node, port), max(peer, peer_port)) > U8_MAX)
		return -EINVAL;
	*cable = (struct fabric_cable){ .node = node, .port = port, .peer = peer, .peer_port = peer_port };
	return 0;
}

int soft_topology_plan(struct fabric_plan *plan)
{
	unsigned int i, wrong;
	int ret = 0;

	plan->switches = switch_count;
	plan->switch_ports = switch_ports;
	plan->cables = parsed;
	if (!switch_count && !cable_count)
		return 0;
	if (plan->trunks) {
		pr_err("soft_ib: with switches and cables, there is no trunk\n");
		return -EINVAL;
	}
	if (plan->subnets > 1) {
		pr_err("soft_ib: with switches and cables, subnets=%u is not 1\n", plan->subnets);
		return -EINVAL;
	}
	for (i = 0; i < switch_count && !ret; i++)
		ret = parse_switch(i);
	for (i = 0; i < cable_count && !ret; i++) {
		ret = parse_cable(cables[i], &parsed[i]);
		if (ret)
			pr_err("soft_ib: cables=%s is not two ports\n", cables[i]);
	}
	if (ret)
		return ret;
	plan->cable_count = cable_count;
	wrong = fabric_wrong_cable(plan);
	if (wrong == cable_count)
		return 0;
	pr_err("soft_ib: cables=%s: a port does not exist, or has another cable\n", cables[wrong]);
	return -EINVAL;
}

void soft_topology_name(void)
{
	unsigned int i;

	for (i = 0; i < switch_count; i++) {
		const char *name = strchr(switches[i], ':');

		if (name)
			fabric_name_switch(soft_fabric, i, name + 1);
	}
}

/* The knobs. The data of a file is the number of its switch. */

static int plugged_get(void *data, u64 *value)
{
	*value = fabric_has_switch(soft_fabric, (uintptr_t)data);
	return 0;
}

static int plugged_set(void *data, u64 value)
{
	bool possible;

	spin_lock_irq(&soft_fabric_lock);
	possible = fabric_plug_switch(soft_fabric, (uintptr_t)data, value);
	spin_unlock_irq(&soft_fabric_lock);
	soft_settle();
	return possible ? 0 : -EOPNOTSUPP;
}
DEFINE_DEBUGFS_ATTRIBUTE(plugged_fops, plugged_get, plugged_set, "%llu\n");

/* "PORT 0" disconnects the cable of a port, "PORT 1" connects it. */
static ssize_t cable_write(struct file *file, const char __user *from, size_t bytes, loff_t *position)
{
	unsigned int port, up;
	char text[16];
	bool found;

	if (bytes >= sizeof(text))
		return -EMSGSIZE;
	if (copy_from_user(text, from, bytes))
		return -EFAULT;
	text[bytes] = 0;
	if (sscanf(text, "%u %u", &port, &up) != 2 || up > 1)
		return -EINVAL;
	spin_lock_irq(&soft_fabric_lock);
	found = fabric_set_cable(soft_fabric, (uintptr_t)file->private_data, port, up);
	spin_unlock_irq(&soft_fabric_lock);
	soft_settle();
	return found ? bytes : -ENOENT;
}

static const struct file_operations cable_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = cable_write,
};

void soft_topology_debugfs(struct dentry *root)
{
	unsigned int i, count = fabric_switches(soft_fabric);

	for (i = 0; i < count; i++) {
		void *data = (void *)(uintptr_t)i;
		struct dentry *dir;
		char name[16];

		snprintf(name, sizeof(name), "switch%u", i);
		dir = debugfs_create_dir(name, root);
		debugfs_create_file_unsafe("plugged", 0644, dir, data, &plugged_fops);
		debugfs_create_file("cable", 0200, dir, data, &cable_fops);
	}
}
