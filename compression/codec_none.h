// The codec `none`: fp32 as it is.
#ifndef LONGHAUL_COMPRESSION_CODEC_NONE_H_
#define LONGHAUL_COMPRESSION_CODEC_NONE_H_

#include "compression/codec.h"

namespace longhaul::compression {

// Wire id 0. docs/formats.md has the bytes.
const Codec& NoneCodec();

}  // namespace longhaul::compression

#endif  // LONGHAUL_COMPRESSION_CODEC_NONE_H_
