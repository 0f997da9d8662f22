// What of a card's memory workers and planner leave alone.
#ifndef LONGHAUL_BASE_CARD_MEMORY_H_
#define LONGHAUL_BASE_CARD_MEMORY_H_

#include <cstdint>

namespace longhaul {

// Bytes of a card with so many that each of its workers leaves alone: for its context and
// libraries, for what the allocator rounds up, and for whoever else draws on the card.
constexpr int64_t CardMemoryMargin(int64_t total_bytes) {
  return (int64_t{256} << 20) + total_bytes / 50;
}

}  // namespace longhaul

#endif  // LONGHAUL_BASE_CARD_MEMORY_H_
