// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * /sys/kernel/debug/soft_ib/capture: every packet on the wire, as an ERF file. Opening the file for reading starts the
 * capture, closing that stops it; any write ends the file for its reader. README.md describes it.
 */
#include "compat.h"
#include "engine.h"
#include <linux/fs.h>
#include <linux/kfifo.h>
#include <linux/module.h>
#include <linux/wait.h>

enum { BUFFER_BYTES = 16 << 20, MAX_PAYLOAD = 8192, MAX_READ = 1 << 16 };

struct recorder {
	struct kfifo fifo;
	u16 lost;
	bool ended;
	u8 payload[MAX_PAYLOAD];
	u8 record[FABRIC_MAX_AROUND_PAYLOAD + MAX_PAYLOAD];
	u8 buffer[BUFFER_BYTES];
	/* Under reader_lock: bytes on the way to the reader. */
	u8 out[MAX_READ];
};

/* Guards the open capture, and its content. */
static DEFINE_SPINLOCK(recorder_lock);
static struct recorder *recorder;
static DEFINE_MUTEX(reader_lock);
static DECLARE_WAIT_QUEUE_HEAD(readers);
static u32 lost_in_all;

static void add(struct recorder *to, const struct frame *frame, bool by_switch)
{
	struct fabric_sighting seen = {
		.nanoseconds = ktime_get_real_ns(),
		.lost = to->lost,
		.by_switch = by_switch,
	};
	u32 bytes = 0;

	if (frame->headers->payload_bytes <= MAX_PAYLOAD) {
		soft_gather(frame, to->payload);
		bytes = fabric_make_record(&seen, frame->headers, to->payload, to->record);
	}
	if (!bytes || kfifo_avail(&to->fifo) < bytes) {
		to->lost += to->lost < U16_MAX;
		WRITE_ONCE(lost_in_all, lost_in_all + 1);
		return;
	}
	kfifo_in(&to->fifo, to->record, bytes);
	to->lost = 0;
}

void soft_capture(const struct frame *frame, bool by_switch)
{
	unsigned long flags;

	if (likely(!READ_ONCE(recorder)))
		return;
	spin_lock_irqsave(&recorder_lock, flags);
	if (recorder && !recorder->ended)
		add(recorder, frame, by_switch);
	spin_unlock_irqrestore(&recorder_lock, flags);
	wake_up_interruptible(&readers);
}

static int capture_open(struct inode *inode, struct file *file)
{
	struct recorder *mine;
	int ret = 0;

	if (!(file->f_mode & FMODE_READ))
		return 0;
	mine = soft_vzalloc(sizeof(*mine), false);
	if (!mine)
		return -ENOMEM;
	ret = kfifo_init(&mine->fifo, mine->buffer, BUFFER_BYTES);
	spin_lock_irq(&recorder_lock);
	if (!ret && recorder)
		ret = -EBUSY;
	if (!ret) {
		lost_in_all = 0;
		WRITE_ONCE(recorder, mine);
	}
	spin_unlock_irq(&recorder_lock);
	if (ret)
		vfree(mine);
	else
		file->private_data = mine;
	return ret;
}

static int capture_release(struct inode *inode, struct file *file)
{
	if (!(file->f_mode & FMODE_READ))
		return 0;
	spin_lock_irq(&recorder_lock);
	WRITE_ONCE(recorder, NULL);
	spin_unlock_irq(&recorder_lock);
	vfree(file->private_data);
	return 0;
}

/* The next bytes, if there are any. Returns true if there is no need to wait. */
static bool take(struct recorder *from, size_t bytes, unsigned int *taken)
{
	bool ended;

	spin_lock_irq(&recorder_lock);
	*taken = kfifo_out(&from->fifo, from->out, min_t(size_t, bytes, MAX_READ));
	ended = from->ended;
	spin_unlock_irq(&recorder_lock);
	return *taken || ended;
}

static ssize_t capture_read(struct file *file, char __user *to, size_t bytes, loff_t *position)
{
	struct recorder *mine = file->private_data;
	unsigned int taken = 0;
	int ret;

	ret = mutex_lock_interruptible(&reader_lock);
	if (ret)
		return ret;
	ret = wait_event_interruptible(readers, take(mine, bytes, &taken));
	if (!ret && copy_to_user(to, mine->out, taken))
		ret = -EFAULT;
	mutex_unlock(&reader_lock);
	return ret ?: taken;
}

static ssize_t capture_write(struct file *file, const char __user *from, size_t bytes, loff_t *position)
{
	spin_lock_irq(&recorder_lock);
	if (recorder)
		recorder->ended = true;
	spin_unlock_irq(&recorder_lock);
	wake_up_interruptible(&readers);
	return bytes;
}

static const struct file_operations capture_fops = {
	.owner = THIS_MODULE,
	.open = capture_open,
	.read = capture_read,
	.write = capture_write,
	.release = capture_release,
};

void soft_capture_start(struct dentry *dir)
{
	debugfs_create_file("capture", 0600, dir, NULL, &capture_fops);
	debugfs_create_u32("capture_lost", 0444, dir, &lost_in_all);
}
