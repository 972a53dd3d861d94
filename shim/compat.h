/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What differs between kernels, decided by the compile probes in shim/probes/ (see <generated/probes.h>), and
 * given one name each here. Nothing else in the project asks which kernel this is.
 */
#pragma once
#include <generated/probes.h>
#include <linux/netdevice.h>

#if __has_include(<net/page_pool/helpers.h>)
#include <net/page_pool/helpers.h>
#else
#include <net/page_pool.h>
#endif

/* The sample that net_dim() takes. */
#ifdef HAVE_DIM_SAMPLE_POINTER
#define SHIM_DIM_SAMPLE(sample) (&(sample))
#else
#define SHIM_DIM_SAMPLE(sample) (sample)
#endif

/* The number of records in a path answer. */
#ifdef HAVE_SA_PATH_COUNT_UNSIGNED
typedef unsigned int shim_path_count;
#else
typedef int shim_path_count;
#endif
