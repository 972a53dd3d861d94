// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* hex_to_bin() is in a header of its own. */
#include <linux/hex.h>
