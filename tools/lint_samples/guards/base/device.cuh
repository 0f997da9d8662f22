// Has none.
#pragma once
