//! The folders of VS Code's and related programs' data.

use grove_transcript::TranscriptSource;

use crate::platform::{Platform, StoreEnvironment, below, set};
use crate::reader::StoreRoot;

/// The programs that are built from VS Code, as they name their folders.
const PRODUCTS: &[&str] = &["Code", "Code - Insiders", "Code - Exploration", "VSCodium", "Cursor", "Positron"];
/// The folders of servers, below the home folder and in two places of VS Code's own containers.
const SERVERS: &[&str] = &[".vscode-server", ".vscode-server-insiders", ".vscode-remote"];
const CONTAINERS: &[&str] = &["/tmp/.vscode-server", "/workspace/.vscode-server"];

/// Every possible folder of sessions; most do not exist.
pub fn store_roots(platform: Platform, environment: &StoreEnvironment) -> Vec<StoreRoot> {
    let home = environment.home.as_str();
    let config = match platform {
        Platform::Linux => set(environment.config_home.as_ref())
            .map_or_else(|| below(platform, home, &[".config"]), |folder| folder.into()),
        Platform::MacOs => below(platform, home, &["Library", "Application Support"]),
        Platform::Windows => set(environment.app_data.as_ref())
            .map_or_else(|| below(platform, home, &["AppData", "Roaming"]), |folder| folder.into()),
    };
    let config = config.to_string_lossy();
    let root =
        |product: &str, folder| StoreRoot { source: TranscriptSource::VsCode, product: product.to_owned(), folder };
    let mut roots: Vec<StoreRoot> =
        PRODUCTS.iter().map(|product| root(product, below(platform, &config, &[product, "User"]))).collect();
    for server in SERVERS {
        roots.push(root(&server[1..], below(platform, home, &[server, "data", "User"])));
    }
    if let Some(server) = set(environment.vscode_server.as_ref()) {
        roots.push(root("vscode-server", below(platform, server, &["data", "User"])));
    }
    if platform == Platform::Linux && environment.in_container {
        for container in CONTAINERS {
            roots.push(root("vscode-server", below(platform, container, &["data", "User"])));
        }
    }
    roots
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(platform: Platform, environment: &StoreEnvironment) -> Vec<String> {
        store_roots(platform, environment).iter().map(|root| root.folder.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn every_product_is_looked_for_where_each_platform_has_it() {
        let home = |home: &str| StoreEnvironment { home: home.into(), ..StoreEnvironment::default() };
        let linux = folders(Platform::Linux, &home("/home/me"));
        for folder in [
            "/home/me/.config/Code/User",
            "/home/me/.config/Code - Insiders/User",
            "/home/me/.config/VSCodium/User",
            "/home/me/.config/Cursor/User",
            "/home/me/.vscode-server/data/User",
            "/home/me/.vscode-server-insiders/data/User",
        ] {
            assert!(linux.iter().any(|known| known == folder), "{folder}");
        }
        let elsewhere = StoreEnvironment { config_home: Some("/cfg".into()), ..home("/home/me") };
        assert_eq!(folders(Platform::Linux, &elsewhere)[0], "/cfg/Code/User");
        let mac = folders(Platform::MacOs, &home("/Users/me"));
        assert_eq!(mac[0], "/Users/me/Library/Application Support/Code/User");
        let windows =
            StoreEnvironment { app_data: Some("C:\\Users\\me\\AppData\\Roaming".into()), ..home("C:\\Users\\me") };
        assert_eq!(folders(Platform::Windows, &windows)[4], "C:\\Users\\me\\AppData\\Roaming\\Cursor\\User");
        assert_eq!(
            folders(Platform::Windows, &home("C:\\Users\\me"))[0],
            "C:\\Users\\me\\AppData\\Roaming\\Code\\User"
        );
    }

    #[test]
    fn nothing_outside_the_home_folder_is_looked_at_unless_the_environment_says_so() {
        let outside = |environment: &StoreEnvironment| {
            let folders = folders(Platform::Linux, environment).into_iter();
            folders.filter(|folder| !folder.starts_with("/home/me/")).collect::<Vec<_>>()
        };
        let of = |variables: &'static [(&str, &str)]| {
            let value =
                |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            StoreEnvironment::of("/home/me".into(), value)
        };
        assert_eq!(outside(&of(&[])), [""; 0]);
        assert_eq!(outside(&of(&[("CODESPACES", ""), ("VSCODE_AGENT_FOLDER", "")])), [""; 0]);
        assert_eq!(outside(&of(&[("VSCODE_AGENT_FOLDER", "/srv/code")])), ["/srv/code/data/User"]);
        let container = ["/tmp/.vscode-server/data/User", "/workspace/.vscode-server/data/User"];
        assert_eq!(outside(&of(&[("REMOTE_CONTAINERS", "true")])), container);
        assert_eq!(outside(&of(&[("CODESPACES", "true")])), container);
    }
}
