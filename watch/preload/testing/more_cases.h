// More cases of cases.c: those of right_cases.c, library_cases.c, new_cases.c and wrong_cases.c.
#pragma once

typedef void Case(int rank, int size, char* program);

// NULL: none of this name.
Case* right_case(const char* name);
Case* library_case(const char* name);
Case* new_case(const char* name);
Case* wrong_case(const char* name);
