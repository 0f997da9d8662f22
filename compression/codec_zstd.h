// The codec `zstd`: lossless, the four byte planes compressed one by one.
#ifndef LONGHAUL_COMPRESSION_CODEC_ZSTD_H_
#define LONGHAUL_COMPRESSION_CODEC_ZSTD_H_

#include "compression/codec.h"

namespace longhaul::compression {

// Wire id 3. docs/formats.md has the bytes.
const Codec& ZstdCodec();

}  // namespace longhaul::compression

#endif  // LONGHAUL_COMPRESSION_CODEC_ZSTD_H_
