// SPDX-License-Identifier: Apache-2.0
// Made by api/check.sh --write from isthmus_api.h. Do not edit.
// Of each part, for each field: the bytes of the struct up to its end, and the digest of the layout until there.
// clang-format off
#ifndef ISTHMUS_API_LAYOUT_H
#define ISTHMUS_API_LAYOUT_H

#include "isthmus_api.h"

struct api_layout_step {
	uint32_t size, digest;
};

struct api_layout_part {
	const char *name;
	const struct api_layout_step *step;
	uint16_t part, steps;
};

static const struct api_layout_step api_engine_steps[] = {
	{4, 0xca4aef68}, {68, 0x89a09f7d}, {72, 0x3306cf49}, {76, 0x7ce6a42a},
	{80, 0x567d54f1}, {84, 0xb8cca75f}, {88, 0x7411dd3f}, {92, 0x293f45ce},
	{96, 0x73dbe1b3}, {100, 0xee40b5ba}, {104, 0x5be3e303}, {108, 0x1187437b},
	{112, 0xbf7b993a}, {116, 0x13a28308}, {120, 0xd5cf5c3f}, {124, 0x1a0af552},
	{128, 0xda2dd565}, {132, 0x34df58c2}, {136, 0x9dbc2f06}, {140, 0x54943137},
	{144, 0x7ff72e45}, {148, 0xa3647c24}, {152, 0xb85fea86}, {156, 0x8a9e976c},
	{160, 0x036a1edf}, {164, 0x28db7a60}, {168, 0xb4f4b778}, {172, 0x0427cdd1},
	{176, 0x6a794bfa}, {180, 0xeeeb22ca}, {184, 0xd5f121a2}, {188, 0x3cdf8a0d},
	{192, 0x2b83b837}, {196, 0x586a8cf0}, {200, 0x2d653e87}, {204, 0x6b390c71},
	{208, 0x34668d41}, {212, 0xe782d45e},
};
static const struct api_layout_step api_port_steps[] = {
	{32, 0x77a01df8}, {288, 0xea277088}, {292, 0xadb4b23e}, {296, 0x01847835},
	{300, 0x1b647cae}, {304, 0x924cc0a0}, {310, 0x7c54ea6f}, {311, 0xe07f7f18},
	{312, 0xc73a5390}, {344, 0x9262f4c5}, {348, 0x4d46ee6b}, {2652, 0x97065ad9},
	{2656, 0xf21b9ee7}, {2660, 0x9ebf8323}, {2664, 0x93788ce2}, {2668, 0xbd78898e},
};
static const struct api_layout_step api_interface_steps[] = {
	{32, 0x728b76bb}, {34, 0xd8f65ee9}, {36, 0x447afc8e}, {40, 0xc3c1181c},
	{200, 0x03b52451}, {204, 0x910367c9}, {208, 0xa52b749a}, {240, 0x4bef2283},
};
static const struct api_layout_step api_route_steps[] = {
	{20, 0x14098351}, {40, 0xdf8ee3b3}, {72, 0x5789abaf}, {104, 0x38b35283},
	{108, 0xefc12992}, {112, 0x93cf105a}, {116, 0xab9de230}, {120, 0x8f3dd565},
};
static const struct api_layout_step api_neighbour_steps[] = {
	{32, 0xa57e047d}, {52, 0x41427c40}, {58, 0xfa379285}, {60, 0x91a19a8a},
};
static const struct api_layout_step api_acl_steps[] = {
	{4, 0x5df141c1}, {8, 0x2c890ad8},
};
static const struct api_layout_step api_policer_steps[] = {
	{4, 0x4a755ded}, {8, 0xe8384296}, {16, 0x17248b11}, {24, 0x20f9162d},
	{32, 0x8a82a625}, {40, 0x7f1c4cd8}, {43, 0xfbe3f53c}, {46, 0x64154cab},
	{47, 0x14637010}, {48, 0x4ec2e042},
};
static const struct api_layout_step api_scheduler_steps[] = {
	{4, 0xa37f2293}, {8, 0xf1d65f29}, {16, 0xba4e5f2a}, {20, 0xa1f6cce5},
	{36, 0x3156f51f}, {40, 0x1bfeda47}, {104, 0x2d2b0e37}, {168, 0xaca367cc},
	{200, 0x7c024c17}, {3784, 0x2b22de6e}, {6600, 0x4376260d}, {6632, 0x6eb73d38},
};
static const struct api_layout_step api_instance_steps[] = {
	{4, 0x6013638f}, {8, 0x1755a572}, {12, 0x4d5e8cee}, {16, 0x06e71099},
	{20, 0x9df6c4f1}, {24, 0x908e3c87}, {26, 0xf3e2f1c2}, {28, 0x8a2fc1b1},
	{284, 0x561b5c2f}, {364, 0xc7e72926}, {684, 0x51408282}, {1964, 0xb44bafb6},
	{2028, 0xf0027820}, {2030, 0x6f4d1b77}, {2032, 0x2f4eff55},
};
static const struct api_layout_step api_path_steps[] = {
	{20, 0xdca782e4}, {40, 0x656491ae}, {42, 0xc5a161cd}, {43, 0x11093a59},
	{44, 0x4f236278}, {48, 0x75661d99}, {112, 0xfc009d95},
};
static const struct api_layout_step api_session_steps[] = {
	{8, 0x00cffca9}, {10, 0x25226db7}, {11, 0x0717ff0b}, {12, 0xbc42d6fa},
	{14, 0x92cbabc4}, {16, 0x64ba9cc1}, {18, 0x48fca4aa}, {20, 0x73eb46cc},
	{26, 0xb263479e}, {28, 0x20a070d4}, {60, 0x42f2a3f8}, {80, 0xe3852d00},
	{100, 0xd5612b70}, {104, 0x4ecfaa60}, {108, 0xdbb3aa19}, {140, 0xd57521bb},
	{268, 0xd00a9fe0}, {272, 0x90d25716}, {274, 0x4c413b64}, {276, 0xeff33849},
	{278, 0x82c8c08d}, {280, 0x179677aa}, {282, 0xd880d828}, {284, 0x85f5062a},
	{286, 0x3dd7f92e}, {288, 0x361e0b04}, {292, 0xfaea7565}, {296, 0xc67d654b},
	{328, 0x702644d0}, {360, 0xf01a2b1a}, {364, 0x43302834}, {366, 0xc108bbfc},
	{367, 0x0af6f1a8}, {368, 0x1259da77}, {400, 0xec959361}, {402, 0xd981015a},
	{408, 0xa3a75ca3},
};
static const struct api_layout_step api_synth_steps[] = {
	{32, 0x728b76bb}, {64, 0xae14099c}, {68, 0x9e63c81d}, {72, 0xc5d3efb2},
	{76, 0x7bb51aa1}, {78, 0xa3e56c10}, {80, 0x01ad7321}, {96, 0x6abc7543},
	{104, 0x6d48d0c4}, {112, 0xb75f6d96}, {120, 0xdeb1b604}, {124, 0x77ca301a},
	{128, 0x1dab1043}, {712, 0x1722ff62}, {1296, 0x346a0f59},
};
static const struct api_layout_step api_nat_steps[] = {
	{4, 0x147d181a}, {6, 0x94b97fde}, {8, 0x3fd11ea4}, {12, 0x7e20cc95},
	{14, 0x8df64013}, {16, 0x55c7bf94}, {20, 0x71e307d4}, {24, 0xaefbac03},
	{28, 0xd289edc4}, {32, 0x1a248281}, {36, 0xdc72ae67}, {40, 0x46f610dd},
	{200, 0xcaff2ddb}, {520, 0x26a1257a}, {524, 0x49824dd8}, {528, 0xe9def691},
	{532, 0x801cb3ae}, {536, 0x095e6bc0},
};
static const struct api_layout_step api_mirror_steps[] = {
	{1, 0xe3136dda}, {2, 0xf11ad4e6}, {3, 0x3fdbe86e}, {4, 0x2fb3e21d},
	{8, 0x653d93af}, {40, 0xb5d75af7}, {60, 0x09c911d2}, {62, 0x013852ac},
	{64, 0x7d719240}, {68, 0x18dcab3c}, {72, 0x0163cb24}, {92, 0x51fa49a3},
	{112, 0xe9d9315c}, {144, 0x23bc30dc}, {148, 0xab0b2bfb}, {152, 0x092587c2},
};
static const struct api_layout_step api_counter_steps[] = {
	{8, 0xe9b8f185}, {16, 0x5feeff47}, {20, 0x7ee8082f}, {24, 0x410565d8},
	{44, 0x14e5e8e4}, {76, 0x2040341e}, {80, 0x68be69d2},
};
static const struct api_layout_step api_nptv6_steps[] = {
	{4, 0xa710425e}, {324, 0xdef2eba9}, {644, 0x2d424472},
};
static const struct api_layout_step api_clone_steps[] = {
	{16, 0xf1fc4a8e}, {272, 0x6863d44a},
};
static const struct api_layout_step api_gtsm_steps[] = {
	{4, 0x8772f341},
};
static const struct api_layout_step api_lines_steps[] = {
	{4, 0x9adcff10}, {8, 0xa0307641},
};
static const struct api_layout_step api_remark_steps[] = {
	{4, 0xf491d50f},
};
static const struct api_layout_step api_hello_steps[] = {
	{4, 0x701bf6eb}, {8, 0xdaa3a9ec}, {16, 0xc962a3a5}, {24, 0xcb84a23b},
	{32, 0x42b7f3ff}, {36, 0x47886f10}, {40, 0x48a04aa2}, {72, 0x228c8407},
	{136, 0x2a4f0e62}, {140, 0x5f7b2c01}, {144, 0xbec2d1a7},
};
static const struct api_layout_step api_layout_steps[] = {
	{2, 0xe3f449d3}, {4, 0xfbc02988}, {8, 0xdaf6b62d}, {12, 0x3d17e48d},
	{16, 0xb863440f},
};
static const struct api_layout_step api_status_steps[] = {
	{4, 0xd5de4e10}, {8, 0x60626766}, {40, 0x93d5358e}, {296, 0xcce0478a},
	{300, 0xe77d0ab0}, {304, 0x12307aa1},
};
static const struct api_layout_step api_object_head_steps[] = {
	{4, 0x7b878647}, {8, 0x650421e8}, {40, 0xa16c3818},
};
static const struct api_layout_step api_digest_steps[] = {
	{4, 0x7b878647}, {8, 0x650421e8}, {40, 0xa16c3818}, {48, 0xf11a2a7f},
};
static const struct api_layout_step api_usage_steps[] = {
	{8, 0x00cffca9}, {12, 0x2b1d5c64}, {16, 0xf5492a2a}, {20, 0xef87e34c},
	{24, 0x4d445056}, {28, 0x56066bb8}, {32, 0x6fe939c9}, {36, 0xab3d6204},
	{40, 0x401f9718}, {64, 0xbc88ffc4}, {88, 0xeae8db04}, {96, 0x1d248455},
	{104, 0x1035eade}, {112, 0x7a52b5c2}, {120, 0xf53bef59},
};
static const struct api_layout_step api_event_steps[] = {
	{8, 0x495a92e1}, {16, 0x5ec24dd6}, {20, 0x7b3524bf}, {24, 0xb983a079},
	{32, 0x7b349539}, {64, 0x72414abb}, {68, 0xa14dc9cd}, {69, 0x5ce66805},
	{70, 0x3f6b4722}, {72, 0x7844eaf9}, {92, 0x2a698845}, {112, 0x1c9fb31c},
	{232, 0xd4eeedd6}, {264, 0x80e13564},
};
static const struct api_layout_step api_acknowledge_steps[] = {
	{8, 0x495a92e1},
};
static const struct api_layout_step api_stats_request_steps[] = {
	{4, 0xc19fa4b3}, {8, 0xc5171b7a}, {40, 0xed6f59ca},
};
static const struct api_layout_step api_stream_command_steps[] = {
	{32, 0xfb7a437b}, {36, 0x83ed99b4}, {40, 0xf12a27a8},
};
static const struct api_layout_step api_acl_rule_steps[] = {
	{20, 0x8016bf54}, {40, 0xb6b0e66a}, {44, 0x0c9e2577}, {48, 0xf696323d},
	{49, 0xd8d63d41}, {50, 0x31451bdb}, {51, 0x3b18a056}, {52, 0xf2ec291d},
	{56, 0x13b7919e},
};
static const struct api_layout_step api_pdr_steps[] = {
	{4, 0xde6eb00d}, {6, 0x507b82ac}, {7, 0x0bf167f3}, {8, 0x3cbe649e},
	{10, 0x5a28d36b}, {11, 0x916f5eb3}, {12, 0xd1af2320}, {13, 0x02de12d5},
	{16, 0x7c64fb0c}, {20, 0xeaae5463}, {40, 0x0e57be24}, {42, 0x29c9a552},
	{44, 0x5b2fed25}, {48, 0xf84a4926}, {56, 0x02178760}, {72, 0x58a3e63a},
	{88, 0xde7d71b9},
};
static const struct api_layout_step api_far_steps[] = {
	{4, 0x2885de7c}, {5, 0xe0449a18}, {6, 0x26b8ef07}, {7, 0x0f8276de},
	{8, 0xca0ac439}, {12, 0x96a717b7}, {14, 0x2fa63f2d}, {15, 0xf68c0e4d},
	{16, 0x3700d643}, {48, 0xa9e4069e}, {52, 0x2a0485ea}, {54, 0xca6e0ad7},
	{56, 0x3117fdf5}, {60, 0x94cc2111}, {61, 0xa17e441e}, {64, 0x96aa40c6},
};
static const struct api_layout_step api_qer_steps[] = {
	{4, 0x2885de7c}, {5, 0xf8c7ffd5}, {6, 0xeb23f7b2}, {7, 0x6ccafde4},
	{8, 0x732406f8}, {12, 0x5a3bb25f}, {44, 0x8040deff}, {76, 0xb3e92629},
	{80, 0x35bad9b7},
};
static const struct api_layout_step api_urr_steps[] = {
	{4, 0x2885de7c}, {6, 0x2fc83081}, {8, 0xd11994b6}, {12, 0x791f8d73},
	{16, 0x71abec22}, {40, 0xa5206460}, {64, 0x34755c1a}, {88, 0x7627fbbb},
	{96, 0x29ac888e}, {100, 0x16d25294}, {104, 0x540f901b}, {108, 0x0b71485b},
	{112, 0x0d073c3f}, {116, 0xad243143}, {120, 0xa1077b52}, {124, 0x2c997c3f},
	{128, 0x31963e3e}, {132, 0xb92abdfe}, {136, 0xfc8c6bba}, {144, 0x23e44805},
	{148, 0x5f4272e0}, {152, 0x432b7819}, {160, 0x17223034},
};
static const struct api_layout_step api_sdf_steps[] = {
	{20, 0x28541137}, {40, 0x415b2a18}, {44, 0xeb1bed86}, {48, 0x796a5ddd},
	{52, 0xb7b042fb}, {56, 0x118e4e47}, {57, 0x74c9442a}, {58, 0xafc5bda1},
	{59, 0x9a818dbe}, {60, 0xa60167fb}, {61, 0xd0d6e3e6}, {62, 0x2a3c9408},
	{64, 0xabedde6a},
};
static const struct api_layout_step api_far_more_steps[] = {
	{1, 0x0cd66394}, {2, 0xabb9a06f}, {3, 0x61408f69}, {4, 0x30685093},
	{8, 0x26b1cba3}, {40, 0xe5cb38bf}, {168, 0x226c8806},
};
static const struct api_layout_step api_address_steps[] = {
	{1, 0x04300cd5}, {2, 0xdf0a0188}, {4, 0x33d92e24}, {20, 0x33b9415b},
};
static const struct api_layout_step api_route_hop_steps[] = {
	{20, 0x37fe2577}, {52, 0xfff97b61},
};
static const struct api_layout_step api_list_steps[] = {
	{4, 0x7b878647}, {8, 0x4131bd96}, {16, 0xb488bb4d}, {24, 0x69cf3779},
};
static const struct api_layout_step api_trace_steps[] = {
	{4, 0xd5d5bbe8}, {8, 0xc7b2c541}, {12, 0xd0bafd0a}, {16, 0xbc0ca4c1},
	{20, 0x63aafd3c}, {24, 0x41939ca6}, {28, 0x05681b48}, {32, 0xfd4f85c7},
	{36, 0xe2b331fc}, {40, 0xeab86c7b}, {72, 0xd9a4b51d},
};
static const struct api_layout_step api_trace_key_steps[] = {
	{4, 0x9a022130}, {8, 0x7b6d06d2}, {28, 0xa87faa12}, {30, 0x9110cefa},
	{32, 0x7cfaeb31}, {34, 0xe3df855f}, {40, 0x5db17098},
};
static const struct api_layout_step api_trace_instruction_steps[] = {
	{2, 0x55bab77c}, {3, 0x720687e2}, {4, 0x341fed9f}, {8, 0x99067974},
};
static const struct api_layout_step api_trace_octets_steps[] = {
	{64, 0xe00ad963},
};
static const struct api_layout_step api_trace_poll_steps[] = {
	{4, 0xb5ced6e6}, {8, 0x2edd84ba},
};
static const struct api_layout_step api_trace_state_steps[] = {
	{4, 0xb5ced6e6}, {8, 0x9a67fa53}, {16, 0xb3ee6c3d}, {24, 0x3faa0f9e},
	{32, 0x546375e9}, {40, 0x48dcb68c},
};
static const struct api_layout_step api_trace_row_steps[] = {
	{4, 0x551f8eb1}, {5, 0x40bcc063}, {6, 0x296892d4}, {8, 0x15620576},
	{16, 0xe9de8138}, {20, 0xef4b53cb}, {24, 0xb6a6968e}, {26, 0xf0c32dcf},
	{28, 0xeee00bf3}, {32, 0x2400b3d1}, {64, 0xde8974bd}, {96, 0x9cc2ea5b},
	{128, 0x9343c386}, {480, 0x980f8104},
};
static const struct api_layout_step api_frame_steps[] = {
	{32, 0x728b76bb}, {40, 0x10a45e5a}, {44, 0x410476ca}, {46, 0x55e8428a},
	{48, 0xcd459cc7}, {50, 0xad060f75}, {52, 0xfa5e771c}, {58, 0x98974b49},
	{59, 0x4948df8a}, {64, 0xcab0e15d},
};
static const struct api_layout_step api_frame_octets_steps[] = {
	{8, 0x4580fd6b},
};
static const struct api_layout_step api_frame_port_steps[] = {
	{32, 0xfb7a437b}, {38, 0xec2bd50a}, {40, 0xd95087f5}, {56, 0x8fc63381},
};
static const struct api_layout_step api_line_range_steps[] = {
	{4, 0x17af9f8b}, {8, 0x19b568fd}, {12, 0xb41a8f88}, {16, 0x9f39fc36},
};
static const struct api_layout_step api_port_row_steps[] = {
	{32, 0xfb7a437b}, {64, 0x0ae2667d}, {68, 0xa5ffe731}, {72, 0x4796e337},
	{76, 0x304fb369}, {80, 0x231b2802}, {86, 0x224b285e}, {88, 0x0054973a},
	{96, 0x3959006d}, {104, 0xb8b58ac3}, {112, 0x2e851369}, {120, 0xca4cfb5c},
	{128, 0xe63b4a4c}, {136, 0x5e5e4d35}, {144, 0xb9bcc897}, {148, 0xe0a75b91},
	{152, 0x1b726d38}, {160, 0xbae0405f}, {288, 0x451d0d4b}, {292, 0x9c6cf9ae},
	{296, 0xbe4a2b4a}, {304, 0xf2f42444}, {312, 0xffaafa0c},
};
static const struct api_layout_step api_node_row_steps[] = {
	{64, 0x2078a2c6}, {68, 0x26fd6abe}, {72, 0x0bf21377}, {80, 0x9bfb8fbc},
	{88, 0x0424ef28}, {96, 0xa0f99e41},
};
static const struct api_layout_step api_drop_row_steps[] = {
	{64, 0x2078a2c6}, {256, 0xccefe8df}, {264, 0xec8e6ba2},
};
static const struct api_layout_step api_worker_row_steps[] = {
	{4, 0xec4408ab}, {8, 0x049b67e2}, {16, 0xbeecb629}, {24, 0x24e31e61},
	{32, 0x5283bfff}, {40, 0x74538244}, {48, 0xc1dbcf68}, {56, 0xcc3df350},
	{64, 0xaaa9ffd5}, {72, 0x8c20be7d}, {80, 0xb10edd98}, {88, 0x4995fd0a},
	{96, 0xd5ecc978}, {104, 0x01b65af6},
};
static const struct api_layout_step api_session_row_steps[] = {
	{32, 0xfb7a437b}, {40, 0x7991519a}, {44, 0x5bcadaa0}, {48, 0x2f8b1a85},
	{80, 0x47731003}, {82, 0x660e224d}, {84, 0x90b1fc45}, {86, 0xa71d43b8},
	{88, 0x94b0be0d}, {94, 0x34600637}, {96, 0x7be12778}, {116, 0xac5683d1},
	{136, 0x9e356a89}, {140, 0xf98c8ec5}, {144, 0x58fedcb9}, {152, 0xe5b11436},
	{160, 0xa0086c1a}, {168, 0xe4d31b3e}, {176, 0xdf710bd0}, {184, 0x127f579b},
	{192, 0xd36c4682}, {200, 0x81f6df14}, {204, 0xd79f673b}, {208, 0x98467185},
	{240, 0x53cd8d46},
};
static const struct api_layout_step api_route_row_steps[] = {
	{20, 0x14098351}, {40, 0xdf8ee3b3}, {72, 0x5789abaf}, {76, 0xa22fb616},
	{80, 0xd625acca}, {112, 0x886107f9}, {116, 0x174c3d59}, {120, 0xae6b3464},
};
static const struct api_layout_step api_neighbour_row_steps[] = {
	{32, 0xa57e047d}, {52, 0x41427c40}, {58, 0xfa379285}, {59, 0x099dc301},
	{60, 0x7af6e364}, {64, 0x69c4bc05}, {68, 0x08ac1bd0},
};
static const struct api_layout_step api_acl_row_steps[] = {
	{32, 0xfb7a437b}, {36, 0x0ab78dc8}, {40, 0x616ff801}, {48, 0xe1e2b175},
};
static const struct api_layout_step api_scheduler_row_steps[] = {
	{32, 0x728b76bb}, {36, 0x1ae3dbab}, {40, 0x52a2bb36}, {44, 0xfc4d85d8},
	{48, 0xb94b71b3}, {56, 0xccff09b3}, {64, 0xbfe0e770}, {72, 0xa099ac4d},
	{80, 0xe0ba078f}, {88, 0xff77231f}, {96, 0xe08de992},
};
static const struct api_layout_step api_edge_row_steps[] = {
	{64, 0x03bb9477}, {128, 0x14e6180c}, {136, 0xa4292803},
};
static const struct api_layout_step api_synth_row_steps[] = {
	{32, 0xfb7a437b}, {40, 0x12745e4e}, {48, 0xefa42460}, {56, 0x12c37ff6},
	{64, 0xc864c7f9}, {72, 0x57ccac0b}, {80, 0xf36d96a4}, {88, 0x1b270249},
	{96, 0x00c8b4c1}, {352, 0xbf1f5373}, {356, 0x80c7d80f}, {360, 0x3aff1a80},
};
static const struct api_layout_step api_total_row_steps[] = {
	{8, 0x79c4df07}, {16, 0xde02a2f4}, {24, 0xa667f7ce}, {32, 0x79dd16db},
	{40, 0x5630ffe0}, {48, 0xf4a90529}, {56, 0x334ef914}, {64, 0xe28c1203},
	{72, 0xc4f16fd2}, {80, 0x786a6495}, {88, 0xaf97ab90}, {96, 0xe94f7fc8},
	{104, 0x6c0ce322}, {112, 0x07688fdf},
};
static const struct api_layout_step api_path_row_steps[] = {
	{32, 0xfb7a437b}, {52, 0x0b86f53f}, {72, 0x8c79b892}, {80, 0x63ea2926},
	{88, 0xf642948a}, {96, 0x9c7fa822}, {104, 0xf5e52fd4}, {108, 0x7b0d8f46},
	{112, 0x521b3246},
};
static const struct api_layout_step api_rule_row_steps[] = {
	{32, 0xbd976420}, {36, 0x3924b39d}, {40, 0xa9aa1205}, {44, 0xa12cd79b},
	{48, 0x13fca956}, {52, 0xe7dca63e}, {56, 0x952b4f89}, {60, 0x30ce5b8c},
	{64, 0x7959e0df}, {84, 0x831e57f8}, {104, 0x3dc7a074}, {112, 0xda1b7b9d},
	{120, 0xef605ae1}, {128, 0xc7a52e67}, {136, 0xedc41616}, {140, 0x7406e08d},
	{144, 0x9923d934}, {160, 0x206379ae}, {176, 0x885cb6db}, {180, 0xc8092bb5},
	{184, 0x0f24fe57}, {192, 0xc1823a5a}, {196, 0x0573ab89}, {200, 0xf5c2809c},
};
static const struct api_layout_step api_urr_row_steps[] = {
	{32, 0xbd976420}, {36, 0xa3c714e2}, {40, 0x539fe41a}, {64, 0xaab5f51e},
	{88, 0x17e5fc4e}, {112, 0x0fae283d}, {116, 0x6f4a5941}, {120, 0x179cca20},
};
static const struct api_layout_step api_instance_row_steps[] = {
	{32, 0xfb7a437b}, {36, 0x86eefa18}, {40, 0x88e23a62}, {44, 0xfa530361},
	{48, 0xb128fc0e}, {56, 0x91f38946}, {64, 0xdb755f47},
};
static const struct api_layout_step api_event_row_steps[] = {
	{4, 0x4a755ded}, {8, 0xead1f698}, {16, 0x4a4b220d}, {24, 0x5a401f8d},
	{32, 0xf327f4f4}, {40, 0xf6bf5375},
};
static const struct api_layout_step api_holder_row_steps[] = {
	{32, 0xfb7a437b}, {40, 0x93b4f180}, {48, 0xb04ac486},
};
static const struct api_layout_step api_nat_row_steps[] = {
	{32, 0xfb7a437b}, {36, 0xc1bee33f}, {40, 0xe5dd7990}, {44, 0x2a1e46ef},
	{48, 0x87651c33}, {52, 0x4b8b44d6}, {56, 0x37512b39}, {60, 0x51a84e85},
	{64, 0x782feeb8}, {72, 0x54926438}, {80, 0x0d85936f}, {88, 0xbc5bd212},
	{96, 0x27026562}, {104, 0x6d9f6131}, {112, 0xfa2ff455},
};
static const struct api_layout_step api_nat_block_row_steps[] = {
	{32, 0xfb7a437b}, {64, 0xefa06009}, {84, 0x4388955e}, {104, 0xd936dc12},
	{108, 0xf1c340ba}, {112, 0xc2db631d}, {116, 0x72d2a22e}, {120, 0xb1153b57},
};
static const struct api_layout_step api_mirror_row_steps[] = {
	{32, 0xfb7a437b}, {64, 0x54d36cb2}, {84, 0xd462f659}, {88, 0x2b388d4c},
	{96, 0x9a0d5cb0}, {104, 0x96fa1363}, {112, 0x4b1aadbf}, {120, 0xa0b2acea},
	{128, 0xbeb4f6f5},
};
static const struct api_layout_step api_counter_row_steps[] = {
	{32, 0xfb7a437b}, {36, 0x87f102bd}, {40, 0x1414f39b}, {48, 0x80dfd073},
	{56, 0xe985db31}, {64, 0x7b592c80}, {72, 0xa219eb52}, {80, 0x1f8e2958},
	{88, 0xdc665002}, {96, 0x2b633dbe},
};
static const struct api_layout_step api_nptv6_row_steps[] = {
	{32, 0xfb7a437b}, {52, 0x48284d38}, {72, 0x9b990f7a}, {80, 0x5c095c90},
	{88, 0xa863f718},
};
static const struct api_layout_step api_clone_row_steps[] = {
	{32, 0xfb7a437b}, {48, 0x7379417b}, {304, 0xe647f95e}, {308, 0xc3a2e9ed},
	{312, 0xa8a1aad6}, {316, 0x525d1a74}, {320, 0xf1a61d4f}, {328, 0x583bed46},
	{336, 0x7668ccd6}, {344, 0x862f3fd7}, {352, 0xfe3cfab5}, {480, 0xe3448cd2},
};
static const struct api_layout_step api_gtsm_row_steps[] = {
	{32, 0xfb7a437b}, {36, 0xefca2f02}, {40, 0x07193742}, {48, 0x0ba7499d},
	{56, 0xc66d6cbc},
};
static const struct api_layout_step api_channel_row_steps[] = {
	{32, 0xfb7a437b}, {40, 0x04d54d3f}, {48, 0xbd08a5df}, {56, 0xbe77d373},
	{64, 0x1bc879ce}, {72, 0x7e489853}, {80, 0x140fdac2}, {88, 0xa59882f1},
};
static const struct api_layout_step api_traffic_row_steps[] = {
	{32, 0x5e6a843f}, {64, 0xfad41f2d}, {68, 0x31838495}, {72, 0x96e67a51},
	{80, 0xf206fe96}, {88, 0xce223922}, {96, 0xad9033c3}, {104, 0xdbe3f407},
};
static const struct api_layout_step api_mss_row_steps[] = {
	{32, 0xfb7a437b}, {40, 0x61369226}, {48, 0x7c5cc3c9}, {56, 0x605a21ed},
};
static const struct api_layout_step api_remark_row_steps[] = {
	{32, 0xfb7a437b}, {36, 0x0c5e4c9c}, {40, 0x1b5f1f30}, {48, 0x949d40c0},
	{56, 0x1561910c},
};

static const struct api_layout_part api_layout_parts[] = {
	{"api_engine", api_engine_steps, API_PART_ENGINE, 38},
	{"api_port", api_port_steps, API_PART_PORT, 16},
	{"api_interface", api_interface_steps, API_PART_INTERFACE, 8},
	{"api_route", api_route_steps, API_PART_ROUTE, 8},
	{"api_neighbour", api_neighbour_steps, API_PART_NEIGHBOUR, 4},
	{"api_acl", api_acl_steps, API_PART_ACL, 2},
	{"api_policer", api_policer_steps, API_PART_POLICER, 10},
	{"api_scheduler", api_scheduler_steps, API_PART_SCHEDULER, 12},
	{"api_instance", api_instance_steps, API_PART_INSTANCE, 15},
	{"api_path", api_path_steps, API_PART_PATH, 7},
	{"api_session", api_session_steps, API_PART_SESSION, 37},
	{"api_synth", api_synth_steps, API_PART_SYNTH, 15},
	{"api_nat", api_nat_steps, API_PART_NAT, 18},
	{"api_mirror", api_mirror_steps, API_PART_MIRROR, 16},
	{"api_counter", api_counter_steps, API_PART_COUNTER, 7},
	{"api_nptv6", api_nptv6_steps, API_PART_NPTV6, 3},
	{"api_clone", api_clone_steps, API_PART_CLONE, 2},
	{"api_gtsm", api_gtsm_steps, API_PART_GTSM, 1},
	{"api_lines", api_lines_steps, API_PART_LINES, 2},
	{"api_remark", api_remark_steps, API_PART_REMARK, 1},
	{"api_hello", api_hello_steps, API_PART_HELLO, 11},
	{"api_layout", api_layout_steps, API_PART_LAYOUT, 5},
	{"api_status", api_status_steps, API_PART_STATUS, 6},
	{"api_object_head", api_object_head_steps, API_PART_OBJECT_HEAD, 3},
	{"api_digest", api_digest_steps, API_PART_DIGEST, 4},
	{"api_usage", api_usage_steps, API_PART_USAGE, 15},
	{"api_event", api_event_steps, API_PART_EVENT, 14},
	{"api_acknowledge", api_acknowledge_steps, API_PART_ACKNOWLEDGE, 1},
	{"api_stats_request", api_stats_request_steps, API_PART_STATS_REQUEST, 3},
	{"api_stream_command", api_stream_command_steps, API_PART_STREAM_COMMAND, 3},
	{"api_acl_rule", api_acl_rule_steps, API_PART_ACL_RULE, 9},
	{"api_pdr", api_pdr_steps, API_PART_PDR, 17},
	{"api_far", api_far_steps, API_PART_FAR, 16},
	{"api_qer", api_qer_steps, API_PART_QER, 9},
	{"api_urr", api_urr_steps, API_PART_URR, 23},
	{"api_sdf", api_sdf_steps, API_PART_SDF, 13},
	{"api_far_more", api_far_more_steps, API_PART_FAR_MORE, 7},
	{"api_address", api_address_steps, API_PART_ADDRESS, 4},
	{"api_route_hop", api_route_hop_steps, API_PART_ROUTE_HOP, 2},
	{"api_list", api_list_steps, API_PART_LIST, 4},
	{"api_trace", api_trace_steps, API_PART_TRACE, 11},
	{"api_trace_key", api_trace_key_steps, API_PART_TRACE_KEY, 7},
	{"api_trace_instruction", api_trace_instruction_steps, API_PART_TRACE_INSTRUCTION, 4},
	{"api_trace_octets", api_trace_octets_steps, API_PART_TRACE_OCTETS, 1},
	{"api_trace_poll", api_trace_poll_steps, API_PART_TRACE_POLL, 2},
	{"api_trace_state", api_trace_state_steps, API_PART_TRACE_STATE, 6},
	{"api_trace_row", api_trace_row_steps, API_PART_TRACE_ROW, 14},
	{"api_frame", api_frame_steps, API_PART_FRAME, 10},
	{"api_frame_octets", api_frame_octets_steps, API_PART_FRAME_OCTETS, 1},
	{"api_frame_port", api_frame_port_steps, API_PART_FRAME_PORT, 4},
	{"api_line_range", api_line_range_steps, API_PART_LINE_RANGE, 4},
	{"api_port_row", api_port_row_steps, API_PART_PORT_ROW, 23},
	{"api_node_row", api_node_row_steps, API_PART_NODE_ROW, 6},
	{"api_drop_row", api_drop_row_steps, API_PART_DROP_ROW, 3},
	{"api_worker_row", api_worker_row_steps, API_PART_WORKER_ROW, 14},
	{"api_session_row", api_session_row_steps, API_PART_SESSION_ROW, 25},
	{"api_route_row", api_route_row_steps, API_PART_ROUTE_ROW, 8},
	{"api_neighbour_row", api_neighbour_row_steps, API_PART_NEIGHBOUR_ROW, 7},
	{"api_acl_row", api_acl_row_steps, API_PART_ACL_ROW, 4},
	{"api_scheduler_row", api_scheduler_row_steps, API_PART_SCHEDULER_ROW, 11},
	{"api_edge_row", api_edge_row_steps, API_PART_EDGE_ROW, 3},
	{"api_synth_row", api_synth_row_steps, API_PART_SYNTH_ROW, 12},
	{"api_total_row", api_total_row_steps, API_PART_TOTAL_ROW, 14},
	{"api_path_row", api_path_row_steps, API_PART_PATH_ROW, 9},
	{"api_rule_row", api_rule_row_steps, API_PART_RULE_ROW, 24},
	{"api_urr_row", api_urr_row_steps, API_PART_URR_ROW, 8},
	{"api_instance_row", api_instance_row_steps, API_PART_INSTANCE_ROW, 7},
	{"api_event_row", api_event_row_steps, API_PART_EVENT_ROW, 6},
	{"api_holder_row", api_holder_row_steps, API_PART_HOLDER_ROW, 3},
	{"api_nat_row", api_nat_row_steps, API_PART_NAT_ROW, 15},
	{"api_nat_block_row", api_nat_block_row_steps, API_PART_NAT_BLOCK_ROW, 8},
	{"api_mirror_row", api_mirror_row_steps, API_PART_MIRROR_ROW, 9},
	{"api_counter_row", api_counter_row_steps, API_PART_COUNTER_ROW, 10},
	{"api_nptv6_row", api_nptv6_row_steps, API_PART_NPTV6_ROW, 5},
	{"api_clone_row", api_clone_row_steps, API_PART_CLONE_ROW, 12},
	{"api_gtsm_row", api_gtsm_row_steps, API_PART_GTSM_ROW, 5},
	{"api_channel_row", api_channel_row_steps, API_PART_CHANNEL_ROW, 8},
	{"api_traffic_row", api_traffic_row_steps, API_PART_TRAFFIC_ROW, 8},
	{"api_mss_row", api_mss_row_steps, API_PART_MSS_ROW, 4},
	{"api_remark_row", api_remark_row_steps, API_PART_REMARK_ROW, 5},
};

#endif
