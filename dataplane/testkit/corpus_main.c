// SPDX-License-Identifier: Apache-2.0
// A fuzz target as a test: replays the files of the given folders, as libFuzzer does with -runs=0, under gcc's
// sanitizers. Usage: TARGET FOLDER...; 77 (skipped) when there is no file.
#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void replay(const char *path)
{
	FILE *file = fopen(path, "rb");
	long size;
	uint8_t *data;

	if (file == NULL || fseek(file, 0, SEEK_END) != 0 || (size = ftell(file)) < 0 ||
		fseek(file, 0, SEEK_SET) != 0) {
		perror(path);
		exit(1);
	}
	data = malloc((size_t)size); // no byte more: a read past the end is found
	if ((data == NULL && size > 0) || fread(data, 1, (size_t)size, file) != (size_t)size) {
		perror(path);
		exit(1);
	}
	fclose(file);
	fprintf(stderr, "%s\n", path); // what it reads when it stops
	LLVMFuzzerTestOneInput(data, (size_t)size);
	free(data);
}

int main(int argc, char **argv)
{
	char path[PATH_MAX];
	uint32_t files = 0;

	for (int i = 1; i < argc; i++) {
		DIR *folder = opendir(argv[i]);

		if (folder == NULL)
			continue;
		for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
			if (entry->d_type != DT_REG ||
				snprintf(path, sizeof(path), "%s/%s", argv[i], entry->d_name) >= (int)sizeof(path))
				continue;
			replay(path);
			files++;
		}
		closedir(folder);
	}
	printf("%u inputs\n", files);
	return files > 0 ? 0 : 77;
}
