// For tests of data/: Megatron's index as the document in docs/formats.md has it.
#ifndef LONGHAUL_DATA_TESTING_MEGATRON_H_
#define LONGHAUL_DATA_TESTING_MEGATRON_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace longhaul::data {

// The memory of the numbers.
template <typename T>
std::string NumberBytes(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// The parts of an index, each as it is written; counts follow from the lists unless set.
struct MegatronParts {
  std::string magic = std::string("MMIDIDX\0\0", 9);
  uint64_t version = 1;
  uint8_t type = 8;
  std::vector<int32_t> lengths;
  std::vector<int64_t> pointers;
  std::vector<int64_t> documents;
  int64_t sequence_count = -1, document_count = -1;

  std::string Bytes() const {
    const auto count = [](int64_t set, size_t own) {
      return static_cast<uint64_t>(set >= 0 ? set : static_cast<int64_t>(own));
    };
    return magic + NumberBytes<uint64_t>({version}) + std::string(1, static_cast<char>(type)) +
           NumberBytes<uint64_t>(
               {count(sequence_count, lengths.size()), count(document_count, documents.size())}) +
           NumberBytes(lengths) + NumberBytes(pointers) + NumberBytes(documents);
  }
};

// One document for each length, uint16 tokens.
inline MegatronParts MegatronDocuments(const std::vector<int32_t>& lengths) {
  MegatronParts parts;
  int64_t bytes = 0;
  for (const int32_t length : lengths) {
    parts.documents.push_back(static_cast<int64_t>(parts.lengths.size()));
    parts.lengths.push_back(length);
    parts.pointers.push_back(bytes);
    bytes += 2 * int64_t{length};
  }
  parts.documents.push_back(static_cast<int64_t>(lengths.size()));
  return parts;
}

}  // namespace longhaul::data

#endif  // LONGHAUL_DATA_TESTING_MEGATRON_H_
