// Aligned text tables.
#ifndef LONGHAUL_COORDINATOR_PLAN_TABLE_H_
#define LONGHAUL_COORDINATOR_PLAN_TABLE_H_

#include <string>
#include <vector>

namespace longhaul::coordinator {

enum class Align { kLeft, kRight };

// One line a row, each ended by '\n', columns two spaces apart and as wide as their widest cell; no
// spaces at the ends of lines. Every row has as many cells as `columns`.
std::string FormatTable(const std::vector<Align>& columns,
                        const std::vector<std::vector<std::string>>& rows);

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_PLAN_TABLE_H_
