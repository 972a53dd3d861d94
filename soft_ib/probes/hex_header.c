// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* hex_to_bin() has its own header. */
#include <linux/hex.h>
