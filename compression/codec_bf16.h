// The codec `bf16`: the upper half of each fp32, rounded to nearest even.
#ifndef LONGHAUL_COMPRESSION_CODEC_BF16_H_
#define LONGHAUL_COMPRESSION_CODEC_BF16_H_

#include "compression/codec.h"

namespace longhaul::compression {

// Wire id 1. docs/formats.md has the bytes.
const Codec& Bf16Codec();

}  // namespace longhaul::compression

#endif  // LONGHAUL_COMPRESSION_CODEC_BF16_H_
