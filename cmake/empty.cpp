// The source of targets that exist for their precompiled header.
int main() {
    return 0;
}
