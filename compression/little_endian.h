// Fixed-size numbers in byte buffers. Longhaul's formats and the hosts it runs on are both
// little-endian, so this is memcpy with a name.
#ifndef LONGHAUL_COMPRESSION_LITTLE_ENDIAN_H_
#define LONGHAUL_COMPRESSION_LITTLE_ENDIAN_H_

#include <bit>
#include <cstring>
#include <type_traits>

namespace longhaul::compression {

static_assert(std::endian::native == std::endian::little);

// `bytes` must have sizeof(T) bytes; no alignment is needed.
template <typename T>
T LoadLittleEndian(const void* bytes) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

template <typename T>
void StoreLittleEndian(T value, void* bytes) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(bytes, &value, sizeof(T));
}

}  // namespace longhaul::compression

#endif  // LONGHAUL_COMPRESSION_LITTLE_ENDIAN_H_
