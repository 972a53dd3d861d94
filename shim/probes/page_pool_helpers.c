// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Functions of page pools for drivers have a header, net/page_pool/helpers.h. */
#include <net/page_pool/helpers.h>
