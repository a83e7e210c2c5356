// SPDX-License-Identifier: Apache-2.0
#ifndef HOST_CHANNEL_H
#define HOST_CHANNEL_H

#include "isthmus_api.h"

uint8_t channel_kind(uint16_t reason); // enum api_frame_reason of a punt reason; 0: none
struct api_channel_row channel_down_row(void); // of `show channel`

#endif
