// The header of llm.c's token files (karpathy/llm.c, dev/data/data_common.py): 256 int32 numbers,
// of which the first are a magic number, a version and the number of tokens. Magic 20240520,
// version 1: uint16 tokens; magic 20240801, version 7: uint32 tokens.
#ifndef LONGHAUL_DATA_LLMC_HEADER_H_
#define LONGHAUL_DATA_LLMC_HEADER_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "data/token_format.h"

namespace longhaul::data {

// What the magic number at the file's start announces, if it is one of llm.c's.
std::optional<TokenFormat> LlmcFormat(absl::string_view bytes);

// Length of the header in bytes, 0 if there is none. InvalidArgument names `path` for a header that
// is cut off, of another version, of another format than `format`, or that announces another number
// of tokens than the file holds.
absl::StatusOr<size_t> CheckLlmcHeader(absl::string_view bytes, const std::string& path,
                                       TokenFormat format);

}  // namespace longhaul::data

#endif  // LONGHAUL_DATA_LLMC_HEADER_H_
