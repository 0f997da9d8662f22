#include <iostream>

TEST(Model, MayPrint) { std::cout << 1; }
