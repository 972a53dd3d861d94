// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * /sys/kernel/debug/soft_ib/<n>/: an HCA's counters and knobs; README.md describes them. A write takes effect before it
 * returns.
 */
#include "compat.h"
#include "glue.h"
#include <linux/inet.h>
#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

enum { MAX_INJECTED_BYTES = 8192, MAX_INJECT_TEXT = 2 * MAX_INJECTED_BYTES + 512 };

static struct dentry *root;

static int counters_show(struct seq_file *file, void *unused)
{
	struct soft_slot *slot = file->private;
	unsigned int i;

#define X(name) seq_printf(file, "%-16s %lld\n", #name, atomic64_read(&slot->counters.name));
	SOFT_COUNTERS(X)
#undef X
	for (i = 0; i < soft_vectors; i++)
		seq_printf(file, "cqs_on_vector_%-2u %d\n", i, atomic_read(&slot->cqs[i]));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(counters);

static int link_get(void *data, u64 *value)
{
	struct soft_slot *slot = data;

	*value = fabric_hca_port(soft_fabric, slot->index)->state != IB_PORT_DOWN;
	return 0;
}

static int link_set(void *data, u64 value)
{
	mutex_lock(&soft_plug_lock);
	soft_set_link(data, value);
	mutex_unlock(&soft_plug_lock);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(link_fops, link_get, link_set, "%llu\n");

static int width_get(void *data, u64 *value)
{
	struct soft_slot *slot = data;

	*value = ib_width_enum_to_int(fabric_hca_port(soft_fabric, slot->index)->active_width);
	return 0;
}

static int speed_get(void *data, u64 *value)
{
	struct soft_slot *slot = data;

	*value = fabric_hca_port(soft_fabric, slot->index)->active_speed;
	return 0;
}

static int limit_link(struct soft_slot *slot, u8 widths, u8 speeds)
{
	if (!widths && !speeds)
		return -EINVAL;
	mutex_lock(&soft_plug_lock);
	soft_limit_link(slot, widths, speeds);
	mutex_unlock(&soft_plug_lock);
	return 0;
}

static int width_set(void *data, u64 value) { return limit_link(data, soft_widths_up_to(value), 0); }
static int speed_set(void *data, u64 value) { return limit_link(data, 0, soft_speeds_up_to(value)); }
DEFINE_DEBUGFS_ATTRIBUTE(width_fops, width_get, width_set, "%llu\n");
DEFINE_DEBUGFS_ATTRIBUTE(speed_fops, speed_get, speed_set, "%llu\n");

static int plugged_get(void *data, u64 *value)
{
	struct soft_slot *slot = data;

	*value = rcu_access_pointer(slot->hca) != NULL;
	return 0;
}

static int plugged_set(void *data, u64 value)
{
	int ret = 0;

	mutex_lock(&soft_plug_lock);
	if (value)
		ret = soft_plug(data);
	else
		soft_unplug(data);
	mutex_unlock(&soft_plug_lock);
	return ret;
}
DEFINE_DEBUGFS_ATTRIBUTE(plugged_fops, plugged_get, plugged_set, "%llu\n");

static int kill_rc_set(void *data, u64 value)
{
	struct soft_slot *slot = data;
	struct soft_hca *hca;

	mutex_lock(&soft_plug_lock);
	hca = rcu_dereference_protected(slot->hca, lockdep_is_held(&soft_plug_lock));
	if (hca && value)
		soft_rc_kill_all(hca);
	mutex_unlock(&soft_plug_lock);
	return 0;
}

static int talk_back_set(void *data, u64 value)
{
	struct soft_slot *slot = data;
	struct soft_hca *hca;

	mutex_lock(&soft_plug_lock);
	hca = rcu_dereference_protected(slot->hca, lockdep_is_held(&soft_plug_lock));
	if (hca && value)
		soft_rc_talk_back(hca, value);
	mutex_unlock(&soft_plug_lock);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(talk_back_fops, NULL, talk_back_set, "%llu\n");
DEFINE_DEBUGFS_ATTRIBUTE(kill_rc_fops, NULL, kill_rc_set, "%llu\n");

/* "index GUID" */
static ssize_t alias_guid_write(struct file *file, const char __user *from, size_t bytes, loff_t *position)
{
	char text[64];
	u32 index;
	u64 guid;

	if (bytes >= sizeof(text))
		return -EMSGSIZE;
	if (copy_from_user(text, from, bytes))
		return -EFAULT;
	text[bytes] = 0;
	if (sscanf(text, "%u %llx", &index, &guid) != 2 || index < 1 || index >= FABRIC_GUIDS)
		return -EINVAL;
	soft_set_alias(file->private_data, index, guid);
	return bytes;
}

static const struct file_operations alias_guid_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = alias_guid_write,
};

static int parse_gid(const char *text, u8 *gid)
{
	/* 32 hexadecimal digits. */
	return strlen(text) == 32 ? hex2bin(gid, text, 16) : -EINVAL;
}

static int parse_number(const char *text, u32 *value) { return kstrtou32(text, 0, value); }

/* Passes each word "key=value" to set. */
static int parse_words(char *text, int (*set)(void *to, const char *key, const char *value), void *to)
{
	char *word;
	int ret = 0;

	while (!ret && (word = strsep(&text, " \n"))) {
		char *key = strsep(&word, "=");

		if (*key)
			ret = word ? set(to, key, word) : -EINVAL;
	}
	return ret;
}

struct injection {
	struct fabric_headers headers;
	u8 *payload;
	/* Bytes of payload that were given. */
	u32 bytes;
};

static int set_injection(void *to, const char *key, const char *value)
{
	struct injection *injection = to;
	struct fabric_headers *h = &injection->headers;
	u32 number = 0;
	int ret;

	if (!strcmp(key, "dgid"))
		return parse_gid(value, h->dgid);
	if (!strcmp(key, "sgid"))
		return parse_gid(value, h->sgid);
	if (!strcmp(key, "hex")) {
		injection->bytes = strlen(value) / 2;
		return injection->bytes > MAX_INJECTED_BYTES ? -EMSGSIZE :
							       hex2bin(injection->payload, value, injection->bytes);
	}
	ret = parse_number(value, &number);
	if (ret)
		return ret;
	if (!strcmp(key, "dqpn"))
		h->destination_qpn = number;
	else if (!strcmp(key, "sqpn"))
		h->source_qpn = number;
	else if (!strcmp(key, "qkey"))
		h->qkey = number;
	else if (!strcmp(key, "pkey"))
		h->pkey = number;
	else if (!strcmp(key, "slid"))
		h->slid = number;
	else if (!strcmp(key, "dlid"))
		h->dlid = number;
	else if (!strcmp(key, "grh"))
		h->grh = number;
	else if (!strcmp(key, "bytes"))
		h->payload_bytes = number;
	else
		return -EINVAL;
	return 0;
}

static int inject(struct soft_slot *slot, char *text, u8 *payload)
{
	struct injection injection = {
		.headers = {
			.opcode = FABRIC_UD_SEND_ONLY,
			.pkey = 0xffff,
			.slid = 1,
			.source_qpn = 2,
			.hop_limit = 1,
			.dlid = fabric_hca_port(soft_fabric, slot->index)->lid,
		},
		.payload = payload,
	};
	struct fabric_headers *h = &injection.headers;
	int ret = parse_words(text, set_injection, &injection);

	if (ret)
		return ret;
	if (h->payload_bytes > MAX_INJECTED_BYTES)
		return -EMSGSIZE;
	h->payload_bytes = max(h->payload_bytes, injection.bytes);
	soft_inject(slot, h, payload);
	return 0;
}

static ssize_t inject_write(struct file *file, const char __user *from, size_t bytes, loff_t *position)
{
	struct soft_slot *slot = file->private_data;
	u8 *payload = kzalloc(MAX_INJECTED_BYTES, GFP_KERNEL);
	char *text = bytes < MAX_INJECT_TEXT ? memdup_user_nul(from, bytes) : ERR_PTR(-EMSGSIZE);
	int ret = payload ? PTR_ERR_OR_ZERO(text) : -ENOMEM;

	if (!ret)
		ret = inject(slot, text, payload);
	if (!IS_ERR(text))
		kfree(text);
	kfree(payload);
	return ret ?: bytes;
}

static const struct file_operations inject_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = inject_write,
};

/* Parameters of a lookup by ib_client's get_net_dev_by_params. */
struct question {
	u16 pkey;
	union ib_gid gid;
	bool has_gid;
	struct sockaddr_storage address;
};

static int set_question(void *to, const char *key, const char *value)
{
	struct question *q = to;
	struct sockaddr_in *v4 = (struct sockaddr_in *)&q->address;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&q->address;

	if (!strcmp(key, "pkey"))
		return kstrtou16(value, 0, &q->pkey);
	if (!strcmp(key, "gid")) {
		q->has_gid = true;
		return parse_gid(value, q->gid.raw);
	}
	if (!strcmp(key, "ip")) {
		v4->sin_family = AF_INET;
		return in4_pton(value, -1, (u8 *)&v4->sin_addr, -1, NULL) ? 0 : -EINVAL;
	}
	if (!strcmp(key, "ip6")) {
		v6->sin6_family = AF_INET6;
		return in6_pton(value, -1, (u8 *)&v6->sin6_addr, -1, NULL) ? 0 : -EINVAL;
	}
	return -EINVAL;
}

static void resolve(struct soft_slot *slot, const struct question *q)
{
	const struct sockaddr *address = q->address.ss_family ? (const struct sockaddr *)&q->address : NULL;
	struct net_device *dev = NULL;
	struct soft_hca *hca;

	mutex_lock(&soft_plug_lock);
	hca = rcu_dereference_protected(slot->hca, lockdep_is_held(&soft_plug_lock));
	if (hca)
		dev = ib_get_net_dev_by_params(&hca->ib, 1, q->pkey, q->has_gid ? &q->gid : NULL, address);
	strscpy(slot->resolved, dev ? dev->name : "none", sizeof(slot->resolved));
	/* Kernels before 5.15 do not take NULL, here and below. */
	if (dev)
		dev_put(dev);
	mutex_unlock(&soft_plug_lock);
}

static int resolve_show(struct seq_file *file, void *unused)
{
	struct soft_slot *slot = file->private;

	mutex_lock(&soft_plug_lock);
	seq_printf(file, "%s\n", slot->resolved);
	mutex_unlock(&soft_plug_lock);
	return 0;
}

static int resolve_open(struct inode *inode, struct file *file)
{
	return single_open(file, resolve_show, inode->i_private);
}

static ssize_t resolve_write(struct file *file, const char __user *from, size_t bytes, loff_t *position)
{
	struct soft_slot *slot = ((struct seq_file *)file->private_data)->private;
	char *text = bytes < MAX_INJECT_TEXT ? memdup_user_nul(from, bytes) : ERR_PTR(-EMSGSIZE);
	struct question q = {};
	int ret;

	if (IS_ERR(text))
		return PTR_ERR(text);
	ret = parse_words(text, set_question, &q);
	kfree(text);
	if (!ret)
		resolve(slot, &q);
	return ret ?: bytes;
}

static const struct file_operations resolve_fops = {
	.owner = THIS_MODULE,
	.open = resolve_open,
	.read = seq_read,
	.write = resolve_write,
	.release = single_release,
};

/* Held netdev, whose unregistration waits. */
static struct net_device *held;
static DEFINE_MUTEX(held_lock);

static void hold(struct net_device *dev)
{
	mutex_lock(&held_lock);
	swap(held, dev);
	mutex_unlock(&held_lock);
	if (dev)
		dev_put(dev);
}

/* Takes the netdev's name in the writer's network namespace; an empty line releases it. */
static ssize_t held_netdev_write(struct file *file, const char __user *from, size_t bytes, loff_t *position)
{
	struct net_device *dev = NULL;
	char text[IFNAMSIZ + 1], *name;

	if (bytes >= sizeof(text))
		return -EMSGSIZE;
	if (copy_from_user(text, from, bytes))
		return -EFAULT;
	text[bytes] = 0;
	name = strim(text);
	if (*name) {
		dev = dev_get_by_name(current->nsproxy->net_ns, name);
		if (!dev)
			return -ENODEV;
	}
	hold(dev);
	return bytes;
}

static const struct file_operations held_netdev_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = held_netdev_write,
};

void soft_debugfs_start(void)
{
	unsigned int i;

	root = debugfs_create_dir("soft_ib", NULL);
	debugfs_create_file("held_netdev", 0200, root, NULL, &held_netdev_fops);
	soft_capture_start(root);
	soft_topology_debugfs(root);
	soft_view_debugfs(root);
	soft_trunks_debugfs(root);
	for (i = 0; i < soft_hca_count; i++) {
		struct soft_slot *slot = &soft_slots[i];
		char name[8];

		snprintf(name, sizeof(name), "%u", soft_number(slot));
		slot->dir = debugfs_create_dir(name, root);
		debugfs_create_file("counters", 0444, slot->dir, slot, &counters_fops);
		debugfs_create_u32("drop_every", 0644, slot->dir, &slot->drop_every);
		debugfs_create_u32("corrupt_every", 0644, slot->dir, &slot->corrupt_every);
		debugfs_create_u32("delay_us", 0644, slot->dir, &slot->delay_us);
		debugfs_create_u32("rate_mbps", 0644, slot->dir, &slot->rate_mbps);
		debugfs_create_u32("hold_sends", 0644, slot->dir, &slot->hold_sends);
		debugfs_create_u32("fail_sends", 0644, slot->dir, &slot->fail_sends);
		debugfs_create_u32("lose_completions", 0644, slot->dir, &slot->lose_completions);
		debugfs_create_u32("drop_rc_every", 0644, slot->dir, &slot->drop_rc_every);
		debugfs_create_u32("rnr_every", 0644, slot->dir, &slot->rnr_every);
		debugfs_create_u32("min_retries", 0644, slot->dir, &slot->min_retries);
		debugfs_create_u32("fail_rdma_netdev", 0644, slot->dir, &slot->fail_rdma_netdev);
		debugfs_create_u32("leave_qkey", 0644, slot->dir, &slot->leave_qkey);
		debugfs_create_u32("hide_gid_change", 0644, slot->dir, &slot->hide_gid_change);
		debugfs_create_file_unsafe("kill_rc", 0200, slot->dir, slot, &kill_rc_fops);
		debugfs_create_file_unsafe("talk_back", 0200, slot->dir, slot, &talk_back_fops);
		debugfs_create_file("alias_guid", 0200, slot->dir, slot, &alias_guid_fops);
		debugfs_create_file_unsafe("link", 0644, slot->dir, slot, &link_fops);
		debugfs_create_file_unsafe("width", 0644, slot->dir, slot, &width_fops);
		debugfs_create_file_unsafe("speed", 0644, slot->dir, slot, &speed_fops);
		debugfs_create_file_unsafe("plugged", 0644, slot->dir, slot, &plugged_fops);
		debugfs_create_file("inject", 0200, slot->dir, slot, &inject_fops);
		debugfs_create_file("resolve", 0600, slot->dir, slot, &resolve_fops);
	}
}

void soft_debugfs_stop(void)
{
	debugfs_remove_recursive(root);
	hold(NULL);
}
