#include "daemon/rpc/protocol.h"

#include "absl/strings/str_cat.h"

namespace longhaul::daemon {
namespace {

std::string Describe(const ProtocolVersions& versions) {
  return absl::StrCat("control protocol ", versions.oldest, " to ", versions.newest, " (build ",
                      versions.build, ")");
}

}  // namespace

ProtocolVersions OwnProtocol() { return {1, 1, LONGHAUL_VERSION}; }

absl::Status CheckProtocol(const ProtocolVersions& own, const ProtocolVersions& peers,
                           const std::string& peer) {
  if (peers.oldest <= own.newest && own.oldest <= peers.newest && peers.oldest <= peers.newest) {
    return absl::OkStatus();
  }
  const bool peer_is_older = peers.newest < own.oldest;
  return absl::FailedPreconditionError(absl::StrCat(
      peer, " speaks ", Describe(peers), ", this side speaks ", Describe(own), "; upgrade ",
      peer_is_older ? peer : "this side", " so that both speak a version in common"));
}

}  // namespace longhaul::daemon
