// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Library functions: error pointers, random numbers, text, and the kernel log. */
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/netdevice.h>
#include <linux/printk.h>
#include <linux/random.h>
#include <shim/lib.h>

SHIM int shim_ptr_err_or_zero(const void *pointer) { return PTR_ERR_OR_ZERO(pointer); }
SHIM uint32_t shim_get_random_u32(void) { return get_random_u32(); }
SHIM uint32_t shim_get_random_u32_below(uint32_t limit) { return reciprocal_scale(get_random_u32(), limit); }

SHIM bool shim_sscanf_int(const char *text, int *value) { return sscanf(text, "%i", value) == 1; }

int shim_scnprintf(char *buffer, size_t bytes, const char *format, ...)
{
	va_list arguments;
	int written;

	va_start(arguments, format);
	written = vscnprintf(buffer, bytes, format, arguments);
	va_end(arguments);
	return written;
}

void shim_log(const struct net_device *dev, enum shim_level level, const char *format, ...)
{
	static const char *const marks[] = {
		[SHIM_LOG_WARNING] = KERN_WARNING,
		[SHIM_LOG_INFO] = KERN_INFO,
		[SHIM_LOG_DEBUG] = KERN_DEBUG,
	};
	struct va_format message = { .fmt = format };
	va_list arguments;

	va_start(arguments, format);
	message.va = &arguments;
	printk("%s%s: %pV\n", marks[level], dev ? dev->name : KBUILD_MODNAME, &message);
	va_end(arguments);
}
