// The bytes are parsed twice: as they are, and with the checksums made right, so that the checks
// behind them are reached.
#include <xxhash.h>

#include <cstdint>
#include <string>

#include "base/check.h"
#include "compression/frame.h"
#include "compression/little_endian.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longhaul;               // NOLINT: the entry point must be global
  using namespace longhaul::compression;  // NOLINT
  std::string bytes(reinterpret_cast<const char*>(data), size);
  (void)ParseFrame(bytes).ok();
  if (size < kFrameHeaderBytes) return 0;
  const absl::string_view payload = absl::string_view(bytes).substr(kFrameHeaderBytes);
  StoreLittleEndian(uint64_t{XXH3_64bits(payload.data(), payload.size())}, bytes.data() + 80);
  StoreLittleEndian(uint64_t{XXH3_64bits(bytes.data(), 88)}, bytes.data() + 88);
  const absl::StatusOr<FrameHeader> header = ParseFrame(bytes);
  if (!header.ok()) return 0;
  std::string written(kFrameHeaderBytes, '\0');
  WriteFrameHeader(*header, payload, written.data());
  LH_CHECK(bytes.compare(0, kFrameHeaderBytes, written) == 0, ToString(header->key));
  return 0;
}
