// Does not repeat its guard.
#ifndef LONGHAUL_BASE_OPEN_H_
#define LONGHAUL_BASE_OPEN_H_
#endif
