#include <cstdio>

void Show(int steps) {
  std::printf("%d", steps);
  std::fputs("x", stdout);
  std::cout << steps;
  std::fprintf(stderr, "%d", steps);
}
