// What a careless reader of braces would trip over.
#ifndef LONGHAUL_BASE_TRICKY_H_
#define LONGHAUL_BASE_TRICKY_H_

#include <functional>
#include <string>
#include <vector>

#define LONGHAUL_TWICE(x) \
  do {                    \
    (x);                  \
    (x);                  \
  } while (false)

namespace longhaul {

struct Options;

// A brace in a string, a quote in a comment: don't.
inline const char* const kBrace = "{";
inline const std::vector<int> kList = {1, 2, 3};
inline const auto kLambda = [](int x) { return x + 1; };

// Has members of every look.
class Tricky final : public std::function<void()> {
 public:
  explicit Tricky(int a = {}) : a_{a}, b_(1'000'000) {}
  Tricky& operator=(const Tricky&) = default;
  bool operator()(int x) const { return x == '{'; }
  auto Sum() const -> int { return a_ + b_; }

 private:
  int a_{1};
  int b_ = 2;
};

}  // namespace longhaul

#endif  // LONGHAUL_BASE_TRICKY_H_
