// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What an HCA can do for the kernel alone is in flags of its own. */
#include <rdma/ib_verbs.h>

int probe(const struct ib_device *ca);
int probe(const struct ib_device *ca)
{
	return ca->attrs.kernel_cap_flags & (IBK_UD_TSO | IBK_VIRTUAL_FUNCTION | IBK_BLOCK_MULTICAST_LOOPBACK);
}
