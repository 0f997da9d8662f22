#include "data/megatron_index.h"

#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "data/dataset.h"

namespace longhaul::data {
namespace {

// magic{9} version:u64 type:u8 sequences:u64 documents:u64 length:i32{sequences}
// pointer:i64{sequences} begin:i64{documents}
constexpr absl::string_view kMagic("MMIDIDX\0\0", 9);
constexpr uint64_t kVersion = 1;
constexpr size_t kVersionAt = 9, kTypeAt = 17, kSequencesAt = 18, kDocumentsAt = 26;
constexpr size_t kHeaderBytes = 34;
constexpr size_t kLengthBytes = 4, kPointerBytes = 8, kBeginBytes = 8;

template <typename T>
T NumberAt(absl::string_view bytes, size_t offset) {
  T number = 0;
  std::memcpy(&number, bytes.data() + offset, sizeof(number));
  return number;
}

// Megatron's DType; 6 and 7 are float64 and float32.
std::optional<TokenFormat> FormatOf(uint8_t type) {
  switch (type) {
    case 1:
      return TokenFormat::kUint8;
    case 2:
      return TokenFormat::kInt8;
    case 3:
      return TokenFormat::kInt16;
    case 4:
      return TokenFormat::kInt32;
    case 5:
      return TokenFormat::kInt64;
    case 8:
      return TokenFormat::kUint16;
    default:
      return std::nullopt;
  }
}

}  // namespace

bool LooksLikeMegatronIndex(const std::string& path) {
  const auto mapping = Mapping::Open(path);
  return mapping.ok() && mapping->bytes().substr(0, kMagic.size()) == kMagic;
}

absl::StatusOr<MegatronIndex> MegatronIndex::Open(const std::string& path) {
  LH_ASSIGN_OR_RETURN(Mapping mapping, Mapping::Open(path));
  MegatronIndex index(std::move(mapping), path);
  LH_RETURN_IF_ERROR(index.ReadHeader());
  LH_RETURN_IF_ERROR(index.CheckSequences());
  LH_RETURN_IF_ERROR(index.CheckDocuments());
  return index;
}

absl::Status MegatronIndex::Refuse(const std::string& what) const {
  return absl::InvalidArgumentError(absl::StrCat(path_, " is no sound Megatron index: ", what));
}

absl::Status MegatronIndex::ReadHeader() {
  const absl::string_view bytes = mapping_.bytes();
  if (bytes.substr(0, kMagic.size()) != kMagic) return Refuse("it does not begin with MMIDIDX");
  if (bytes.size() < kHeaderBytes) {
    return Refuse(absl::StrCat("it ends within its header of ", kHeaderBytes, " bytes"));
  }
  const uint64_t version = NumberAt<uint64_t>(bytes, kVersionAt);
  if (version != kVersion) {
    return Refuse(absl::StrCat("version ", version, "; this build reads version ", kVersion));
  }
  const uint8_t type = NumberAt<uint8_t>(bytes, kTypeAt);
  const std::optional<TokenFormat> format = FormatOf(type);
  if (!format.has_value()) {
    return Refuse(absl::StrCat("its numbers have type ", type, ", which tokens cannot have"));
  }
  format_ = *format;
  // Each count is bounded by the file's length before it is multiplied.
  const uint64_t rest = bytes.size() - kHeaderBytes;
  const uint64_t sequences = NumberAt<uint64_t>(bytes, kSequencesAt);
  const uint64_t documents = NumberAt<uint64_t>(bytes, kDocumentsAt);
  constexpr uint64_t kSequenceBytes = kLengthBytes + kPointerBytes;
  const bool fits = sequences <= rest / kSequenceBytes && documents <= rest / kBeginBytes;
  const uint64_t needed = fits ? sequences * kSequenceBytes + documents * kBeginBytes : 0;
  if (fits && rest == needed + sequences && sequences > 0) {
    return Refuse("it has sequence modes, so the data is not of tokens alone");
  }
  if (!fits || needed != rest) {
    return Refuse(absl::StrCat("it announces ", sequences, " sequences and ", documents,
                               " document marks, which ", bytes.size(),
                               " bytes do not hold exactly; it may be truncated"));
  }
  sequences_ = static_cast<int64_t>(sequences);
  document_entries_ = static_cast<int64_t>(documents);
  return absl::OkStatus();
}

int64_t MegatronIndex::Length(int64_t sequence) const {
  return NumberAt<int32_t>(mapping_.bytes(), kHeaderBytes + sequence * kLengthBytes);
}

int64_t MegatronIndex::Pointer(int64_t sequence) const {
  return NumberAt<int64_t>(mapping_.bytes(),
                           kHeaderBytes + sequences_ * kLengthBytes + sequence * kPointerBytes);
}

int64_t MegatronIndex::DocumentBegin(int64_t document) const {
  return NumberAt<int64_t>(
      mapping_.bytes(),
      kHeaderBytes + sequences_ * (kLengthBytes + kPointerBytes) + document * kBeginBytes);
}

absl::Status MegatronIndex::CheckSequences() {
  const int64_t token_bytes = static_cast<int64_t>(TokenBytes(format_));
  const int64_t tokens_max = static_cast<int64_t>(kDatasetBytesMax) / token_bytes;
  for (int64_t sequence = 0; sequence < sequences_; ++sequence) {
    const int64_t length = Length(sequence);
    if (length < 0) return Refuse(absl::StrCat("sequence ", sequence, " has length ", length));
    if (Pointer(sequence) != tokens_ * token_bytes) {
      return Refuse(absl::StrCat("sequence ", sequence, " begins at byte ", Pointer(sequence),
                                 ", the one before it ends at byte ", tokens_ * token_bytes));
    }
    if (length > tokens_max - tokens_) {
      return Refuse(absl::StrCat("its sequences have more than ", tokens_max, " tokens"));
    }
    tokens_ += length;
  }
  if (tokens_ == 0) return Refuse("it has no tokens");
  return absl::OkStatus();
}

absl::Status MegatronIndex::CheckDocuments() {
  if (document_entries_ < 1) return Refuse("it has no document marks");
  if (DocumentBegin(0) != 0) {
    return Refuse(absl::StrCat("its first document begins at sequence ", DocumentBegin(0)));
  }
  for (int64_t document = 1; document < document_entries_; ++document) {
    if (DocumentBegin(document) < DocumentBegin(document - 1)) {
      return Refuse(absl::StrCat("document ", document, " begins at sequence ",
                                 DocumentBegin(document), ", before document ", document - 1));
    }
  }
  if (const int64_t end = DocumentBegin(document_entries_ - 1); end != sequences_) {
    return Refuse(
        absl::StrCat("its last document ends at sequence ", end, ", but there are ", sequences_));
  }
  return absl::OkStatus();
}

std::vector<int64_t> MegatronIndex::DocumentStarts() const {
  const int64_t token_bytes = static_cast<int64_t>(TokenBytes(format_));
  std::vector<int64_t> starts = {0};
  for (int64_t document = 1; document + 1 < document_entries_; ++document) {
    const int64_t sequence = DocumentBegin(document);
    if (sequence == sequences_) break;
    const int64_t position = Pointer(sequence) / token_bytes;
    if (position > starts.back() && position < tokens_) starts.push_back(position);
  }
  return starts;
}

}  // namespace longhaul::data
