#include "checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/json.h"
#include "base/status_macros.h"

namespace longhaul::checkpoint {
namespace {

constexpr size_t kLengthBytes = 8;
constexpr size_t kHeaderBytesMax = 100'000'000;  // as the reference implementation
constexpr char kMetadataKey[] = "__metadata__";

struct Dtype {
  absl::string_view name;
  uint64_t bytes;
};
constexpr std::array<Dtype, 15> kDtypes = {{{"BOOL", 1},
                                            {"U8", 1},
                                            {"I8", 1},
                                            {"F8_E5M2", 1},
                                            {"F8_E4M3", 1},
                                            {"I16", 2},
                                            {"U16", 2},
                                            {"F16", 2},
                                            {"BF16", 2},
                                            {"I32", 4},
                                            {"U32", 4},
                                            {"F32", 4},
                                            {"I64", 8},
                                            {"U64", 8},
                                            {"F64", 8}}};

const Dtype* FindDtype(absl::string_view name) {
  const auto found = std::find_if(kDtypes.begin(), kDtypes.end(),
                                  [name](const Dtype& dtype) { return dtype.name == name; });
  return found == kDtypes.end() ? nullptr : &*found;
}

// Bytes of a tensor; nothing for an unknown dtype or a product beyond 64 bits.
std::optional<uint64_t> TensorBytes(const std::string& dtype, const std::vector<int64_t>& shape) {
  const Dtype* const found = FindDtype(dtype);
  if (found == nullptr) return std::nullopt;
  uint64_t bytes = found->bytes;
  for (const int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes)) {
      return std::nullopt;
    }
  }
  return bytes;
}

absl::Status Damaged(absl::string_view message) {
  return absl::DataLossError(absl::StrCat("safetensors: ", message));
}

absl::StatusOr<std::vector<int64_t>> Wholes(const Json& object, absl::string_view key) {
  LH_ASSIGN_OR_RETURN(const Json* list, JsonArray(object, key));
  std::vector<int64_t> numbers;
  for (const Json& item : *list) {
    if (!item.is_number_unsigned() || item.get<uint64_t>() > uint64_t{INT64_MAX}) {
      return absl::InvalidArgumentError(absl::StrCat("'", key, "' holds what is no size"));
    }
    numbers.push_back(item.get<int64_t>());
  }
  return numbers;
}

// One tensor's entry; `data` is what lies behind the header.
absl::StatusOr<TensorView> ParseTensor(const std::string& name, const Json& entry,
                                       absl::string_view data) {
  LH_RETURN_IF_ERROR(JsonOnlyKeys(entry, {"dtype", "shape", "data_offsets"}));
  TensorView tensor;
  tensor.name = name;
  LH_ASSIGN_OR_RETURN(tensor.dtype, JsonText(entry, "dtype"));
  LH_ASSIGN_OR_RETURN(tensor.shape, Wholes(entry, "shape"));
  LH_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, Wholes(entry, "data_offsets"));
  if (offsets.size() != 2 || offsets[0] > offsets[1] ||
      static_cast<uint64_t>(offsets[1]) > data.size()) {
    return absl::InvalidArgumentError("its offsets do not lie in the file");
  }
  if (FindDtype(tensor.dtype) == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("its dtype '", tensor.dtype, "' is not known"));
  }
  const std::optional<uint64_t> bytes = TensorBytes(tensor.dtype, tensor.shape);
  const uint64_t length = static_cast<uint64_t>(offsets[1] - offsets[0]);
  if (bytes != length) {
    return absl::InvalidArgumentError(absl::StrCat("its ", length, " bytes do not fit its dtype ",
                                                   tensor.dtype, " and shape [",
                                                   absl::StrJoin(tensor.shape, ", "), "]"));
  }
  tensor.bytes = data.substr(static_cast<size_t>(offsets[0]), static_cast<size_t>(length));
  return tensor;
}

absl::Status ParseMetadata(const Json& entry, std::map<std::string, std::string>& metadata) {
  if (!entry.is_object()) return Damaged("the metadata is not an object");
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) return Damaged(absl::StrCat("the metadata '", key, "' is not text"));
    metadata[key] = value.get<std::string>();
  }
  return absl::OkStatus();
}

// Tensors, in order of their offsets, follow each other from the first byte to the last.
absl::Status CheckContiguous(const std::vector<TensorView>& tensors, absl::string_view data) {
  const char* end = data.data();
  for (const TensorView& tensor : tensors) {
    if (tensor.bytes.data() != end) {
      return Damaged(absl::StrCat(
          "tensor '", tensor.name, "' ",
          tensor.bytes.data() < end ? "overlaps the one before it" : "leaves a hole before it"));
    }
    end += tensor.bytes.size();
  }
  const size_t rest = static_cast<size_t>(data.data() + data.size() - end);
  if (rest == 0) return absl::OkStatus();
  return Damaged(absl::StrCat(rest, " bytes at the end belong to no tensor"));
}

}  // namespace

std::string SafetensorsHeader(absl::Span<const TensorView> tensors,
                              const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[kMetadataKey] = metadata;
  uint64_t offset = 0;
  absl::flat_hash_set<absl::string_view> names = {kMetadataKey};
  for (const TensorView& tensor : tensors) {
    LH_CHECK(names.insert(tensor.name).second, "tensor ", tensor.name, " is given twice");
    const std::optional<uint64_t> bytes = TensorBytes(tensor.dtype, tensor.shape);
    LH_CHECK(bytes.has_value(), tensor.name);
    const uint64_t end = offset + *bytes;
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  // Blanks align the tensors, so that readers may map them.
  text.resize((text.size() + kLengthBytes - 1) / kLengthBytes * kLengthBytes, ' ');
  std::string length;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length.push_back(static_cast<char>(uint64_t{text.size()} >> (8 * i)));
  }
  return length + text;
}

std::string WriteSafetensors(absl::Span<const TensorView> tensors,
                             const std::map<std::string, std::string>& metadata) {
  std::string bytes = SafetensorsHeader(tensors, metadata);
  size_t size = bytes.size();
  for (const TensorView& tensor : tensors) {
    LH_CHECK(TensorBytes(tensor.dtype, tensor.shape) == tensor.bytes.size(), tensor.name);
    size += tensor.bytes.size();
  }
  bytes.reserve(size);
  for (const TensorView& tensor : tensors) bytes.append(tensor.bytes.data(), tensor.bytes.size());
  return bytes;
}

const TensorView* SafetensorsFile::Find(absl::string_view name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [name](const TensorView& t) { return t.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

absl::StatusOr<SafetensorsFile> ParseSafetensors(absl::string_view bytes) {
  if (bytes.size() < kLengthBytes) return Damaged("the file is shorter than its header's length");
  uint64_t header_bytes = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    header_bytes |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  }
  if (header_bytes > bytes.size() - kLengthBytes) {
    return Damaged(absl::StrCat("the header of ", header_bytes, " bytes does not lie in the file"));
  }
  const absl::string_view header = bytes.substr(kLengthBytes, header_bytes);
  const absl::string_view data = bytes.substr(kLengthBytes + header_bytes);
  const auto root = ParseJson(header, kHeaderBytesMax);
  if (!root.ok()) return Damaged(absl::StrCat("header: ", root.status().message()));
  if (!root->is_object()) return Damaged("the header is not an object");

  SafetensorsFile file;
  for (const auto& [name, entry] : root->items()) {
    if (name == kMetadataKey) {
      LH_RETURN_IF_ERROR(ParseMetadata(entry, file.metadata));
      continue;
    }
    auto tensor = ParseTensor(name, entry, data);
    if (!tensor.ok()) {
      return Damaged(absl::StrCat("tensor '", name, "': ", tensor.status().message()));
    }
    file.tensors.push_back(*std::move(tensor));
  }
  std::sort(file.tensors.begin(), file.tensors.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.bytes.data(), a.bytes.size(), absl::string_view(a.name)) <
           std::tuple(b.bytes.data(), b.bytes.size(), absl::string_view(b.name));
  });
  LH_RETURN_IF_ERROR(CheckContiguous(file.tensors, data));
  return file;
}

}  // namespace longhaul::checkpoint
