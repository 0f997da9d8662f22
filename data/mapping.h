// A whole file in memory, read-only.
#ifndef LONGHAUL_DATA_MAPPING_H_
#define LONGHAUL_DATA_MAPPING_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace longhaul::data {

// Owns the map; movable. The file must not be shortened while it is mapped.
class Mapping {
 public:
  // Errors name the path: missing, unreadable, not a regular file, empty.
  static absl::StatusOr<Mapping> Open(const std::string& path);
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&&) = delete;
  ~Mapping();

  // Begins at a page's start, so that an array at the file's start is aligned.
  absl::string_view bytes() const { return {start_, size_}; }

 private:
  Mapping(const char* start, size_t size) : start_(start), size_(size) {}

  const char* start_;
  size_t size_;
};

}  // namespace longhaul::data

#endif  // LONGHAUL_DATA_MAPPING_H_
