// The codec `int8`: blocks of 256 values, each with one fp32 scale.
#ifndef LONGHAUL_COMPRESSION_CODEC_INT8_H_
#define LONGHAUL_COMPRESSION_CODEC_INT8_H_

#include "compression/codec.h"

namespace longhaul::compression {

// Wire id 2. docs/formats.md has the bytes.
const Codec& Int8Codec();

}  // namespace longhaul::compression

#endif  // LONGHAUL_COMPRESSION_CODEC_INT8_H_
