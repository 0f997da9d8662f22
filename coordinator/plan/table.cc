#include "coordinator/plan/table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace longhaul::coordinator {

std::string FormatTable(const std::vector<Align>& columns,
                        const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(columns.size(), 0);
  for (const std::vector<std::string>& row : rows) {
    LH_CHECK(row.size() == columns.size(), row.size(), " cells in ", columns.size(), " columns");
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - row[i].size(), ' ');
      if (i > 0) line += "  ";
      line += columns[i] == Align::kLeft ? row[i] + padding : padding + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

}  // namespace longhaul::coordinator
