// Has the guard of another file.
#ifndef LONGHAUL_BASE_RIGHT_H_
#define LONGHAUL_BASE_RIGHT_H_
#endif  // LONGHAUL_BASE_RIGHT_H_
