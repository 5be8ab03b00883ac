//! The places of a symbol path, made ready to be searched in their order from several threads.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::archive::Archive;
use super::budget::Budget;
use super::cache::Cache;
use super::download::Client;
use super::listing::Listings;
use super::options::StoreOptions;
use super::path::{Depot, Element, SymbolPath};
use super::server::Server;
use super::tree::Tree;

/// What every search goes along.
pub(super) struct Route {
    pub(super) stops: Vec<Stop>,
    pub(super) user_cache: Option<Arc<Cache>>,
    pub(super) client: Client,
    pub(super) budget: Budget,
    pub(super) listings: Listings,
    pub(super) options: StoreOptions,
}

/// One element of the path.
pub(super) enum Stop {
    /// With the caches that keep what it has.
    Folder(PathBuf, Vec<Link>),
    Tree(Tree),
    Archive(Archive),
    /// Nearest first.
    Chain(Vec<Link>),
}

/// One store of a chain.
#[derive(Clone)]
pub(super) enum Link {
    Store(Arc<Cache>),
    Server(Arc<Server>),
}

impl Route {
    pub(super) fn new(path: &SymbolPath, options: StoreOptions) -> Route {
        let offline = options.offline || cfg!(not(feature = "http"));
        let options = StoreOptions { offline, ..options };
        let client = Client::new(&options, path.logins());
        let mut links = Links { options: &options, stores: Vec::new(), servers: Vec::new() };
        let user_cache = options.user_cache.clone().map(|root| links.store(root));
        let stops = path.chains().map(|(element, chain)| {
            let chain = chain.into_iter().filter_map(|depot| links.link(depot)).collect();
            match element {
                Element::Folder(folder) => Stop::Folder(folder.clone(), chain),
                Element::Tree(folder) => Stop::Tree(Tree::new(folder.clone())),
                Element::Archive(file) => Stop::Archive(Archive::new(file.clone())),
                Element::Cache(_) | Element::Server(_) => Stop::Chain(chain),
            }
        });
        let stops = stops.collect();
        let budget = Budget::new(options.silence, options.time, links.servers.len());
        Route { stops, user_cache, client, budget, listings: Listings::default(), options }
    }
}

/// Folders and servers by name, so that one that stands in the path twice is swept and given up once.
struct Links<'a> {
    options: &'a StoreOptions,
    stores: Vec<Arc<Cache>>,
    servers: Vec<Arc<Server>>,
}

impl Links<'_> {
    /// `None` for the user's cache where there is none.
    fn link(&mut self, depot: &Depot) -> Option<Link> {
        Some(match depot {
            Depot::UserCache => Link::Store(self.store(self.options.user_cache.clone()?)),
            Depot::Folder(folder) => Link::Store(self.store(folder.clone())),
            Depot::Url(base) => {
                let known = self.servers.iter().find(|s| s.base() == base).cloned();
                Link::Server(known.unwrap_or_else(|| {
                    let server = Arc::new(Server::new(base.clone(), self.options));
                    self.servers.push(Arc::clone(&server));
                    server
                }))
            }
        })
    }

    fn store(&mut self, root: PathBuf) -> Arc<Cache> {
        self.stores.iter().find(|s| s.root() == Path::new(&root)).cloned().unwrap_or_else(|| {
            let store = Arc::new(Cache::new(root, self.options.stale_after));
            self.stores.push(Arc::clone(&store));
            store
        })
    }
}
