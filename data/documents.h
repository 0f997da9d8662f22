// Where the documents of a token source begin, and what batches make of that.
#ifndef LONGHAUL_DATA_DOCUMENTS_H_
#define LONGHAUL_DATA_DOCUMENTS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "data/token_source.h"
#include "run/run_spec.h"

namespace longhaul::data {

// Immutable plain data; 8 bytes a document unless packed.
class Documents {
 public:
  // Packed: nobody asks where documents begin.
  Documents() = default;
  // `starts` are the positions of the documents' first tokens: ascending, the first 0.
  Documents(run::DocumentMode mode, std::vector<int64_t> starts);

  run::DocumentMode mode() const { return mode_; }
  // Positions in [begin, end) where a document begins; none if packed.
  absl::Span<const int64_t> StartsIn(int64_t begin, int64_t end) const;
  // Where the document that holds `position` begins. Not if packed.
  int64_t StartOf(int64_t position) const;
  // Where it ends, at most `end_max`.
  int64_t EndOf(int64_t position, int64_t end_max) const;

 private:
  run::DocumentMode mode_ = run::DocumentMode::kPacked;
  std::vector<int64_t> starts_;
};

// Document starts by the token that ends each of them: 0, then behind every `end_of_document` that
// is not the last token. Reads the whole source once.
std::vector<int64_t> FindDocumentStarts(const TokenSource& source, int32_t end_of_document);

}  // namespace longhaul::data

#endif  // LONGHAUL_DATA_DOCUMENTS_H_
