// SPDX-License-Identifier: Apache-2.0
// DPDK headers that nearly every file uses, as a precompiled header (meson option `pch`). Files still include what they
// use: a build through ccache has no such header.
#ifndef ISTHMUS_PCH_H
#define ISTHMUS_PCH_H

#include <errno.h>
#include <rte_cycles.h>
#include <rte_graph_worker.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_vect.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#endif
