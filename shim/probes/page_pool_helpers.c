// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What drivers call of page pools is in a header of its own. */
#include <net/page_pool/helpers.h>
