// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Trunks: links between this machine's switch and those of others, each over a network interface of its own. A frame is
 * one Ethernet packet of a type for local experiments (IEEE 802, clause 9.2.4): a byte with its kind in bits 1:0 and
 * the number of trunks that it has passed before in bits 7:2, then the frame from its LRH on, without ICRC and VCRC.
 * Each side sends a hello every HELLO_MS; silence for SILENCE_MS counts as a disconnected cable.
 *
 * Frames wait in a queue for a tasklet, since they are sent from under locks that disable interrupts. An interface that
 * is unregistered takes its trunk down for good.
 */
#include "engine.h"
#include <linux/if_ether.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/seq_file.h>
#include <linux/skbuff.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>

enum {
	TRUNK_ETHERTYPE = 0x88b5,
	HELLO_MS = 200,
	SILENCE_MS = 5000,
	/* More than a link holds: later frames are dropped, as by a switch without credits. */
	MAX_QUEUED = 4096,
	/* Packets sent by one run of a trunk's tasklet. */
	MAX_DRAINED = 64,
};

enum kind { KIND_HELLO = 1, KIND_FRAME = 2, KIND_MASK = 3 };
/* The largest number that a frame carries: it passes one trunk more. Tables that form a loop of machines end there. */
enum { PASSED_SHIFT = 2, MAX_PASSED = 63 };

/* Reasons to drop a frame that was routed to a trunk. */
enum loss { LOSS_QUEUE_FULL, LOSS_TRUNKS_PASSED, LOSS_NO_MEMORY, LOSSES };

struct trunk {
	/* NULL once the interface was unregistered. Under RTNL, but for the trunk's own packets. */
	struct net_device *dev;
	struct packet_type type;
	struct sk_buff_head queued;
	struct tasklet_struct drainer;
	struct delayed_work hello;
	/* When the last hello came, in jiffies; 0: never. */
	unsigned long heard;
	bool up;
	atomic64_t lost[LOSSES];
};

static struct trunk trunks[FABRIC_MAX_TRUNKS];
static unsigned int trunk_count;

static struct sk_buff *packet(const struct trunk *trunk, u8 first, unsigned int bytes, gfp_t how)
{
	struct sk_buff *skb = alloc_skb(LL_RESERVED_SPACE(trunk->dev) + 1 + bytes, how);

	if (!skb)
		return NULL;
	skb_reserve(skb, LL_RESERVED_SPACE(trunk->dev));
	skb->dev = trunk->dev;
	skb->protocol = htons(TRUNK_ETHERTYPE);
	*(u8 *)skb_put(skb, 1) = first;
	return skb;
}

static void send(struct sk_buff *skb)
{
	static const u8 everybody[ETH_ALEN] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

	skb_reset_network_header(skb);
	if (dev_hard_header(skb, skb->dev, TRUNK_ETHERTYPE, everybody, skb->dev->dev_addr, skb->len) < 0)
		kfree_skb(skb);
	else
		dev_queue_xmit(skb);
}

static void drain(unsigned long data)
{
	struct trunk *trunk = (struct trunk *)data;
	struct sk_buff *skb;
	unsigned int sent = 0;

	while (sent++ < MAX_DRAINED && (skb = skb_dequeue(&trunk->queued)))
		send(skb);
	if (!skb_queue_empty_lockless(&trunk->queued))
		tasklet_schedule(&trunk->drainer);
}

static void queue_frame(struct trunk *trunk, const struct frame *frame)
{
	u8 wire[FABRIC_MAX_HEADER_BYTES];
	unsigned int bytes = fabric_build_headers(frame->headers, wire);
	struct sk_buff *skb;

	if (frame->trunks_passed > MAX_PASSED) {
		atomic64_inc(&trunk->lost[LOSS_TRUNKS_PASSED]);
		return;
	}
	if (skb_queue_len_lockless(&trunk->queued) >= MAX_QUEUED) {
		atomic64_inc(&trunk->lost[LOSS_QUEUE_FULL]);
		return;
	}
	skb = packet(trunk, KIND_FRAME | frame->trunks_passed << PASSED_SHIFT, bytes + frame->headers->payload_bytes,
		     GFP_ATOMIC);
	if (!skb) {
		atomic64_inc(&trunk->lost[LOSS_NO_MEMORY]);
		return;
	}
	skb_put_data(skb, wire, bytes);
	soft_gather(frame, skb_put(skb, frame->headers->payload_bytes));
	skb_queue_tail(&trunk->queued, skb);
	tasklet_schedule(&trunk->drainer);
}

void soft_trunks_send(unsigned int numbers, const struct frame *frame)
{
	for (; numbers; numbers &= numbers - 1)
		queue_frame(&trunks[__ffs(numbers)], frame);
}

static void set_trunk(struct trunk *trunk, bool up)
{
	if (up != trunk->up)
		pr_info("soft_ib: the trunk over %s is %s\n", trunk->dev->name, up ? "up" : "down");
	trunk->up = up;
	spin_lock_irq(&soft_fabric_lock);
	fabric_set_trunk(soft_fabric, trunk - trunks, up);
	spin_unlock_irq(&soft_fabric_lock);
	soft_send_traps();
}

static void say_hello(struct work_struct *work)
{
	struct trunk *trunk = container_of(work, struct trunk, hello.work);
	struct sk_buff *skb = packet(trunk, KIND_HELLO, sizeof(u32), GFP_KERNEL);
	unsigned long last = READ_ONCE(trunk->heard);

	if (skb) {
		*(u32 *)skb_put(skb, sizeof(u32)) = soft_first_hca;
		send(skb);
	}
	set_trunk(trunk, last && time_before(jiffies, last + msecs_to_jiffies(SILENCE_MS)));
	schedule_delayed_work(&trunk->hello, msecs_to_jiffies(HELLO_MS));
}

static void take_hello(struct trunk *trunk, const struct sk_buff *skb)
{
	u32 first_hca;

	if (skb_copy_bits(skb, 1, &first_hca, sizeof(first_hca)))
		return;
	if (first_hca == soft_first_hca)
		pr_warn_ratelimited("soft_ib: the other machine has first_hca=%u too\n", first_hca);
	else
		WRITE_ONCE(trunk->heard, jiffies ?: 1);
}

static int take(struct sk_buff *skb, struct net_device *dev, struct packet_type *type, struct net_device *original)
{
	struct trunk *trunk = container_of(type, struct trunk, type);
	struct fabric_headers headers;
	unsigned int bytes;
	u8 first;

	/* Another consumer of this Ethernet type may hold the packet, which is linearised below. */
	skb = skb_share_check(skb, GFP_ATOMIC);
	if (!skb)
		return NET_RX_DROP;
	if (skb->pkt_type == PACKET_OUTGOING || skb_linearize(skb) || skb->len < 1) {
		kfree_skb(skb);
		return NET_RX_DROP;
	}
	first = skb->data[0];
	if (first == KIND_HELLO)
		take_hello(trunk, skb);
	bytes = (first & KIND_MASK) == KIND_FRAME ? fabric_parse_headers(skb->data + 1, skb->len - 1, &headers) : 0;
	if (bytes && headers.payload_bytes <= skb->len - 1 - bytes)
		soft_arrive_by_trunk(trunk - trunks, &headers, skb->data + 1 + bytes, (first >> PASSED_SHIFT) + 1);
	consume_skb(skb);
	return NET_RX_SUCCESS;
}

static int start(struct trunk *trunk, const char *name)
{
	unsigned int i, max_bytes = 1 + FABRIC_MAX_HEADER_BYTES + SOFT_MAX_FRAME;
	struct net_device *dev = dev_get_by_name(&init_net, name);

	if (!dev) {
		pr_err("soft_ib: trunk=%s: there is no such interface\n", name);
		return -ENODEV;
	}
	for (i = 0; i < trunk_count; i++)
		if (trunks[i].dev == dev) {
			pr_err("soft_ib: trunk=%s is given twice\n", name);
			dev_put(dev);
			return -EINVAL;
		}
	if (READ_ONCE(dev->mtu) < max_bytes) {
		pr_err("soft_ib: trunk=%s: its MTU of %u is less than %u\n", name, dev->mtu, max_bytes);
		dev_put(dev);
		return -EINVAL;
	}
	trunk->dev = dev;
	trunk_count++;
	skb_queue_head_init(&trunk->queued);
	tasklet_init(&trunk->drainer, drain, (unsigned long)trunk);
	trunk->type = (struct packet_type){ .type = cpu_to_be16(TRUNK_ETHERTYPE), .func = take, .dev = dev };
	dev_add_pack(&trunk->type);
	INIT_DELAYED_WORK(&trunk->hello, say_hello);
	schedule_delayed_work(&trunk->hello, 0);
	return 0;
}

/* Takes the trunk down, which remains so, and drops the reference to its interface. Under RTNL. */
static void stop(struct trunk *trunk)
{
	cancel_delayed_work_sync(&trunk->hello);
	dev_remove_pack(&trunk->type);
	set_trunk(trunk, false);
	/* An engine may have routed a frame to the trunk before. */
	synchronize_rcu();
	tasklet_kill(&trunk->drainer);
	skb_queue_purge(&trunk->queued);
	dev_put(trunk->dev);
	trunk->dev = NULL;
}

static int interface_changed(struct notifier_block *notifier, unsigned long event, void *info)
{
	unsigned int i;

	for (i = 0; i < trunk_count && event == NETDEV_UNREGISTER; i++)
		if (trunks[i].dev == netdev_notifier_info_to_dev(info))
			stop(&trunks[i]);
	return NOTIFY_DONE;
}

static struct notifier_block notifier = { .notifier_call = interface_changed };

int soft_trunks_start(char *const *names, unsigned int count)
{
	unsigned int i;
	int ret = count ? register_netdevice_notifier(&notifier) : 0;

	/* No interface is unregistered between its lookup and its start. */
	rtnl_lock();
	for (i = 0; i < count && !ret; i++)
		ret = start(&trunks[i], names[i]);
	rtnl_unlock();
	return ret;
}

void soft_trunks_stop(void)
{
	/* Reports all interfaces as unregistered, which stops the trunks. */
	unregister_netdevice_notifier(&notifier);
	trunk_count = 0;
}

static int trunks_show(struct seq_file *file, void *unused)
{
	unsigned int i, loss;

	seq_puts(file, "trunk        queue_full  trunks_passed      no_memory\n");
	for (i = 0; i < trunk_count; i++) {
		seq_printf(file, "trunk%u  ", i);
		for (loss = 0; loss < LOSSES; loss++)
			seq_printf(file, " %14lld", atomic64_read(&trunks[i].lost[loss]));
		seq_putc(file, '\n');
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(trunks);

void soft_trunks_debugfs(struct dentry *root) { debugfs_create_file("trunks", 0444, root, NULL, &trunks_fops); }
