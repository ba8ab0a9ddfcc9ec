// More cases of cases.c, all right.
#pragma once

typedef void RightCase(int rank, int size, char* program);

// NULL: none of this name.
RightCase* right_case(const char* name);
