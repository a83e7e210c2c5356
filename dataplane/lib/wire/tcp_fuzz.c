// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: see check_tcp().
#include "wire/wire_kit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_tcp(data, size);
	return 0;
}
