// Reads the fixtures of tools/make_model_golden.py, which are in the safetensors format: 8 bytes of
// header length (little-endian), a JSON header, the tensors' bytes.
#ifndef LONGHAUL_TESTS_GOLDEN_TENSOR_FILE_H_
#define LONGHAUL_TESTS_GOLDEN_TENSOR_FILE_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "nlohmann/json.hpp"

namespace longhaul {

// A fixture in memory. Anything unexpected ends the test.
class TensorFile {
 public:
  explicit TensorFile(const std::string& path) : path_(path) {
    auto bytes = ReadFile(path, uint64_t{1} << 24);
    LH_CHECK(bytes.ok(), bytes.status().ToString());
    bytes_ = *std::move(bytes);
    uint64_t header_bytes = 0;
    LH_CHECK(bytes_.size() >= sizeof(header_bytes), path);
    std::memcpy(&header_bytes, bytes_.data(), sizeof(header_bytes));
    data_begin_ = sizeof(header_bytes) + header_bytes;
    LH_CHECK(data_begin_ <= bytes_.size(), path);
    header_ = nlohmann::json::parse(bytes_.substr(sizeof(header_bytes), header_bytes));
  }

  // JSON kept under `key` in the metadata.
  nlohmann::json Metadata(const std::string& key) const {
    return nlohmann::json::parse(header_.at("__metadata__").at(key).get<std::string>());
  }
  std::string TorchVersion() const { return header_.at("__metadata__").at("torch"); }

  std::vector<float> Floats(const std::string& name) const { return Load<float>(name, "F32"); }
  std::vector<int32_t> Integers(const std::string& name) const {
    return Load<int32_t>(name, "I32");
  }

 private:
  template <typename Element>
  std::vector<Element> Load(const std::string& name, const std::string& dtype) const {
    LH_CHECK(header_.contains(name), path_, " has no tensor ", name);
    const nlohmann::json& entry = header_.at(name);
    LH_CHECK(entry.at("dtype") == dtype, path_, ": ", name);
    const size_t begin = entry.at("data_offsets").at(0), end = entry.at("data_offsets").at(1);
    LH_CHECK(begin <= end && data_begin_ + end <= bytes_.size(), path_, ": ", name);
    std::vector<Element> values((end - begin) / sizeof(Element));
    std::memcpy(values.data(), bytes_.data() + data_begin_ + begin, end - begin);
    return values;
  }

  std::string path_, bytes_;
  nlohmann::json header_;
  size_t data_begin_ = 0;
};

}  // namespace longhaul

#endif  // LONGHAUL_TESTS_GOLDEN_TENSOR_FILE_H_
