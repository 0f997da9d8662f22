#include "worker/exec/stage_executor.h"

namespace longhaul::worker {

void DirectiveBox::Set(Directive directive) {
  // The greater number wins: a stop over a checkpoint.
  const uint32_t wanted = static_cast<uint32_t>(directive);
  uint32_t pending = pending_.load();
  while (pending < wanted && !pending_.compare_exchange_weak(pending, wanted)) {
  }
}

Directive DirectiveBox::Take() { return static_cast<Directive>(pending_.exchange(0)); }

}  // namespace longhaul::worker
