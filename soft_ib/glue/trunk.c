// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The trunk: a link between this machine's switch and another's, over an ordinary network interface. A frame is one
 * Ethernet packet of a type for local experiments (IEEE 802, clause 9.2.4): a byte with its kind, then the frame from
 * its LRH on, without ICRC and VCRC. Each side sends a hello every HELLO_MS; silence for SILENCE_MS counts as a
 * disconnected cable.
 *
 * Frames wait in a queue for a tasklet, since they are sent from under locks that disable interrupts.
 */
#include "engine.h"
#include <linux/if_ether.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>

enum {
	TRUNK_ETHERTYPE = 0x88b5,
	HELLO_MS = 200,
	SILENCE_MS = 5000,
	/* More than a link holds: later frames are dropped, as by a switch without credits. */
	MAX_QUEUED = 4096,
};

enum kind { KIND_HELLO = 1, KIND_FRAME = 2 };

static struct net_device *cable;
static struct sk_buff_head queued;
static struct tasklet_struct drainer;
static struct delayed_work hello;
/* In jiffies; 0: never. */
static unsigned long heard;

static struct sk_buff *packet(enum kind kind, unsigned int bytes, gfp_t how)
{
	struct sk_buff *skb = alloc_skb(LL_RESERVED_SPACE(cable) + 1 + bytes, how);

	if (!skb)
		return NULL;
	skb_reserve(skb, LL_RESERVED_SPACE(cable));
	skb->dev = cable;
	skb->protocol = htons(TRUNK_ETHERTYPE);
	*(u8 *)skb_put(skb, 1) = kind;
	return skb;
}

static void send(struct sk_buff *skb)
{
	static const u8 everybody[ETH_ALEN] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

	skb_reset_network_header(skb);
	if (dev_hard_header(skb, cable, TRUNK_ETHERTYPE, everybody, cable->dev_addr, skb->len) < 0)
		kfree_skb(skb);
	else
		dev_queue_xmit(skb);
}

static void drain(unsigned long unused)
{
	struct sk_buff *skb;

	while ((skb = skb_dequeue(&queued)))
		send(skb);
}

void soft_trunk_send(const struct frame *frame)
{
	u8 wire[FABRIC_MAX_HEADER_BYTES];
	unsigned int bytes = fabric_build_headers(frame->headers, wire);
	struct sk_buff *skb;

	if (skb_queue_len_lockless(&queued) >= MAX_QUEUED)
		return;
	skb = packet(KIND_FRAME, bytes + frame->headers->payload_bytes, GFP_ATOMIC);
	if (!skb)
		return;
	skb_put_data(skb, wire, bytes);
	soft_gather(frame, skb_put(skb, frame->headers->payload_bytes));
	skb_queue_tail(&queued, skb);
	tasklet_schedule(&drainer);
}

static void set_trunk(bool up)
{
	static bool was_up;

	if (up != was_up)
		pr_info("soft_ib: the trunk over %s is %s\n", cable->name, up ? "up" : "down");
	was_up = up;
	spin_lock_irq(&soft_fabric_lock);
	fabric_set_trunk(soft_fabric, up);
	spin_unlock_irq(&soft_fabric_lock);
	soft_send_traps();
}

static void say_hello(struct work_struct *unused)
{
	struct sk_buff *skb = packet(KIND_HELLO, sizeof(u32), GFP_KERNEL);
	unsigned long last = READ_ONCE(heard);

	if (skb) {
		*(u32 *)skb_put(skb, sizeof(u32)) = soft_first_hca;
		send(skb);
	}
	set_trunk(last && time_before(jiffies, last + msecs_to_jiffies(SILENCE_MS)));
	schedule_delayed_work(&hello, msecs_to_jiffies(HELLO_MS));
}

static void take_hello(const struct sk_buff *skb)
{
	u32 first_hca;

	if (skb_copy_bits(skb, 1, &first_hca, sizeof(first_hca)))
		return;
	if (first_hca == soft_first_hca)
		pr_warn_ratelimited("soft_ib: the other machine has first_hca=%u too\n", first_hca);
	else
		WRITE_ONCE(heard, jiffies ?: 1);
}

static int take(struct sk_buff *skb, struct net_device *dev, struct packet_type *type, struct net_device *original)
{
	struct fabric_headers headers;
	unsigned int bytes;

	if (skb->pkt_type == PACKET_OUTGOING || skb_linearize(skb) || skb->len < 1) {
		kfree_skb(skb);
		return NET_RX_DROP;
	}
	if (skb->data[0] == KIND_HELLO)
		take_hello(skb);
	bytes = skb->data[0] == KIND_FRAME ? fabric_parse_headers(skb->data + 1, skb->len - 1, &headers) : 0;
	if (bytes && headers.payload_bytes <= skb->len - 1 - bytes)
		soft_arrive_by_trunk(&headers, skb->data + 1 + bytes);
	consume_skb(skb);
	return NET_RX_SUCCESS;
}

static struct packet_type trunk_type = { .type = cpu_to_be16(TRUNK_ETHERTYPE), .func = take };

int soft_trunk_start(const char *name)
{
	unsigned int max_bytes = 1 + FABRIC_MAX_HEADER_BYTES + SOFT_MAX_FRAME;
	struct net_device *dev = dev_get_by_name(&init_net, name);

	if (!dev) {
		pr_err("soft_ib: trunk=%s: there is no such interface\n", name);
		return -ENODEV;
	}
	if (READ_ONCE(dev->mtu) < max_bytes) {
		pr_err("soft_ib: trunk=%s: its MTU of %u is less than %u\n", name, dev->mtu, max_bytes);
		dev_put(dev);
		return -EINVAL;
	}
	cable = dev;
	skb_queue_head_init(&queued);
	tasklet_init(&drainer, drain, 0);
	trunk_type.dev = dev;
	dev_add_pack(&trunk_type);
	INIT_DELAYED_WORK(&hello, say_hello);
	schedule_delayed_work(&hello, 0);
	return 0;
}

void soft_trunk_stop(void)
{
	if (!cable)
		return;
	cancel_delayed_work_sync(&hello);
	dev_remove_pack(&trunk_type);
	set_trunk(false);
	/* An engine may have read the pointer before. */
	synchronize_rcu();
	tasklet_kill(&drainer);
	skb_queue_purge(&queued);
	dev_put(cable);
	cable = NULL;
}
