#include <cstdio>

void Print(const char* text) { std::fputs(text, stdout); }
