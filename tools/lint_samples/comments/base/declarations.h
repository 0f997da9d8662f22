// Explained and unexplained declarations.
#ifndef LONGHAUL_BASE_DECLARATIONS_H_
#define LONGHAUL_BASE_DECLARATIONS_H_

#include <string>

namespace longhaul {

class Forward;

// By the header's own comment comes the first:
inline constexpr int kConstant = 1;

int First();

class Unexplained {
 public:
  int Member() const;
};

// Two of a group.
int One();
int Two(int value);

int Three(const std::string& text, int value = 3);

// Squares.
double Square(double value);

float Square(float value);

inline int Defined() { return 1; }

struct Plain {
  int a = 0;
};

struct Members {
  int a = 0;  // metres
};

enum class Kind { kOne, kTwo };

template <typename T>
class Box {
 public:
  T value;
};

}  // namespace longhaul

#endif  // LONGHAUL_BASE_DECLARATIONS_H_
