# Image of `simstore serve`. The store is in the volume /data; the tokens are in /read.token and /write.token.
FROM rust:1.89-slim AS build
WORKDIR /simstore
COPY . .
RUN cargo build --release --locked -p simstore-cli

FROM debian:stable-slim
COPY --from=build /simstore/target/release/simstore /usr/local/bin/simstore
RUN useradd --system --uid 10001 simstore && install -d -o simstore /data
USER simstore
VOLUME /data
EXPOSE 8120
STOPSIGNAL SIGTERM
ENTRYPOINT ["simstore"]
CMD ["serve", "/data/pages", "--listen", "0.0.0.0:8120", "--read-token-file", "/read.token", "--write-token-file", "/write.token", "--log", "json"]
