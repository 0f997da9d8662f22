// A node's device as people and scripts read it.
#ifndef LONGHAUL_CLI_NODE_DEVICE_H_
#define LONGHAUL_CLI_NODE_DEVICE_H_

#include <string>
#include <vector>

#include "longhaul/v1/admin.pb.h"
#include "nlohmann/json.hpp"

namespace longhaul::cli {

// "cpu", or a card's name: for a column of a table.
std::string DeviceInShort(const v1::NodeSummary& node);

// What the node computes on, its rates and memory, and of a card what it last said of itself: pairs
// of a label and a value. What is not known is left out.
std::vector<std::vector<std::string>> DeviceRows(const v1::NodeSummary& node);

// {"kind", "name"}, with "card" and "readings" for cards; what is not known is left out.
nlohmann::ordered_json DeviceToJson(const v1::NodeSummary& node);

}  // namespace longhaul::cli

#endif  // LONGHAUL_CLI_NODE_DEVICE_H_
